"""The page on site files says what the functions of a site file take: keys, types and defaults."""

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from site_configs import common, pbs, simgrid, slurm
from site_configs.programs.installed import Installed
from site_configs.schema import fields as schema
from site_configs.schema.waivers import DIFFERENCES
from site_configs.topology.layouts import Layout, Topology

PAGE = Path(__file__).resolve().parents[2] / "docs" / "site_configuration.md"
DESCRIBED = {
    "`site()`": common.site,
    "`partition()`": common.partition,
    "`environment()`": common.environment,
    "`Topology()`": Topology,
    "`Layout()`": Layout,
    "`Installed()`": Installed,
    "Simulated machines: `machine()`": simgrid.machine,
    "Simulated machines: `selector()`": simgrid.selector,
}
#: Classes whose fields are the parameters of a function.
PIECES = {common.site: schema.Site, common.partition: schema.Partition, common.environment: schema.Environment}
CELLS = re.compile(r"(?<!\\)\|")


def table_of(section: str) -> list[dict[str, str]]:
    """The rows of the first table below a heading, by the words of its head."""
    text = PAGE.read_text()
    assert f"\n## {section}\n" in text, f"{PAGE.name} has no section {section}"
    body = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in body.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip().replace("\\|", "|") for cell in CELLS.split(line)[1:-1]] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def default_of(owner: Callable[..., Any], parameter: inspect.Parameter) -> str:
    """The default as the page has it; a field that is made anew for each object tells what is made."""
    if hasattr(owner, "__dataclass_fields__"):
        factory = {field.name: field.default_factory for field in fields(owner)}[parameter.name]
        if factory is not MISSING:
            return repr(factory())
    return repr(parameter.default)


def format_type(kind: Any) -> str:
    """A type as it is written, without its limits."""
    parts = [format_type(each) for each in get_args(kind)]
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(parts)
    name = "None" if kind is type(None) else str(getattr(kind, "__name__", kind)).rpartition(".")[2]
    return f"{name}[{', '.join(parts)}]" if parts else name


def row_of(owner: Callable[..., Any], parameter: inspect.Parameter) -> dict[str, str]:
    rest = parameter.kind is parameter.VAR_KEYWORD
    required = parameter.default is parameter.empty and not rest
    kind = get_type_hints(PIECES.get(owner, owner))[parameter.name]
    return {
        "key": f"`{parameter.name}`",
        "type": f"`{format_type(Any if rest else kind)}`",
        "required": "yes" if required else "no",
        "default": "" if required or rest else f"`{default_of(owner, parameter)}`",
    }


@pytest.mark.parametrize("section", DESCRIBED)
def test_page_has_each_key_with_type_and_default(section: str) -> None:
    owner = DESCRIBED[section]
    expected = [row_of(owner, parameter) for parameter in inspect.signature(owner).parameters.values()]
    rows = table_of(section)
    assert all(row["meaning"] for row in rows)
    told = [{name: row[name] for name in ("key", "type", "required", "default")} for row in rows]
    assert {each["key"]: each for each in told} == {each["key"]: each for each in expected}
    assert len(told) == len(expected)


@pytest.mark.parametrize(
    ("section", "column", "known"),
    [
        ("Defaults of a partition", "variable", schema.Defaults.__struct_fields__),
        ("Waivers", "fact", DIFFERENCES),
    ],
)
def test_page_has_each_word_of_a_closed_list(section: str, column: str, known: Any) -> None:
    assert [row[column].strip("`") for row in table_of(section)] == list(known)


def test_page_has_each_scheduler_and_launcher_with_its_name() -> None:
    known = {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in (slurm, pbs)
        for name in module.__all__
        if isinstance(value := getattr(module, name), str)
    }
    rows = table_of("Schedulers and launchers")
    assert {row["name"].strip("`"): row["value"].strip("`") for row in rows} == known


def test_page_names_the_module_systems() -> None:
    (row,) = [row for row in table_of("`site()`") if row["key"] == "`modules_system`"]
    assert {f"`{name}`" for name in schema.MODULES_SYSTEMS} <= set(re.findall(r"`\w+`", row["meaning"]))
