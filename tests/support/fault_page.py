"""Write ``docs/faults.md`` from what tests declare: ``python -m tests.support.fault_page``. None is run."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from tests.support.faults import EITHER, KINDS, OR, Fault, plants
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "faults.md"
DECLARES = plants.__name__
HEAD = """\
# Planted faults

Tests plant these {number} faults. Each row names what is planted, where, and the verdict, exit status and
message that must come; `…` stands for any text. The row is the declaration on the test itself, and the test
fails if anything else comes, or if it does not look. A verdict `–` means that no case is judged. Where a test
looks at one part alone, the exit status is that of a session with that verdict, of a command with that error,
or of `mpicost` where it runs by itself.

Beside them [test_damaged_files.py](../tests/unit/test_damaged_files.py) damages every kind of file that is
read at random: a reader gives values of its types, or one line.

Written by `.plumbline/venv/bin/python -m tests.support.fault_page` from `@plants` in the tests.
"""
COLUMNS = ("planted", "where", "verdict", "exit", "message", "test")


@dataclass(frozen=True)
class Row:
    """A declared fault and its test."""

    fault: Fault
    path: str  #: of the module, from the root
    test: str


def collect_faults() -> list[Row]:
    """Collect what all tests declare.

    :raises ValueError: for a declaration that no test has, or that is not written out.
    """
    paths = sorted(ROOT.glob("tests/**/test_*.py"))
    return [row for path in paths for row in read_module(path)]


def read_module(path: Path) -> Iterator[Row]:
    """Find the faults that the tests of a module declare, in their decorators or in tables named there."""
    text = path.read_text(encoding="utf-8")
    if f"{DECLARES}(" not in text:
        return
    tree = ast.parse(text)
    tables = {
        target.id: calls
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and (calls := find_calls([node]))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found: set[ast.Call] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names = {
                each.id
                for place in node.decorator_list
                for each in ast.walk(place)
                if isinstance(each, ast.Name)
            }
            calls = find_calls(node.decorator_list)
            calls += [call for name in tables if name in names for call in tables[name]]
            found.update(calls)
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
            yield from (Row(read_fault(path, call), name, node.name) for call in calls)
    for call in set(find_calls([tree])) - found:
        raise ValueError(f"{path}:{call.lineno}: declares a fault that no test plants")


def find_calls(nodes: Iterable[ast.AST]) -> list[ast.Call]:
    """Find the declarations within these nodes."""
    calls = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Call))
    return [call for call in calls if ast.unparse(call.func) == DECLARES]


def read_fault(path: Path, call: ast.Call) -> Fault:
    """Read a declaration. Raises ValueError naming its line, unless its values are written out."""
    try:
        return Fault(*map(ast.literal_eval, call.args))
    except (ValueError, TypeError, AssertionError) as error:
        raise ValueError(f"{path}:{call.lineno}: {error}; write every value out") from None


def write_page(rows: list[Row]) -> str:
    """Write the page: a table for each kind."""
    parts = [HEAD.format(number=len(rows))]
    for kind, title in KINDS.items():
        of_kind = [row for row in rows if row.fault.kind == kind]
        if of_kind:
            lines = [f"## {title}", "", format_cells(COLUMNS), format_cells(["---"] * len(COLUMNS))]
            parts.append("\n".join([*lines, *map(format_row, of_kind), ""]))
    return "\n".join(parts)


def format_row(row: Row) -> str:
    """Format a fault as a line of a table."""
    fault = row.fault
    verdict, link = fault.verdict or "–", f"[{row.test.removeprefix('test_')}](../{row.path})"
    messages = fault.message.split(EITHER)
    message = OR.join(f"`` {each} ``" if "`" in each else f"`{each}`" for each in messages)
    cells = [fault.planted, fault.where, verdict, str(fault.status), message, link]
    return format_cells(cell.replace("|", "\\|") for cell in cells)


def format_cells(cells: Iterable[str]) -> str:
    """Format a line of a table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    files.replace_files({PAGE: write_page(collect_faults()).encode()})
