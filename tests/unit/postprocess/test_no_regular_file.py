"""A pipe or an endless device in the place of a file is refused at once, by whoever reads it."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postprocess.analyses import alarms
from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.cli.output_files import is_own_output
from postprocess.judging import outcome
from postprocess.model.plan import read_launch_file
from postprocess.model.verdict import RecordError
from postprocess.parsers.mpicost import iter_lines
from postprocess.parsers.reframe_report import read_report
from postprocess.references import reference_file
from postprocess.references.reference_file import load_session_priors
from postprocess.results import launch_costs, query, store
from postprocess.results.summary import load_summary
from postprocess.session.nightly.imported import read_imported_tests
from site_configs.mpi.inventory import read_stored_inventory
from site_configs.programs.installed import ExecutableFacts, read_facts
from site_configs.schedulers.base import ENDED, read_ended
from spack_envs import installation
from spack_envs.mirror.manifest import describe_file
from tests.support.faults import Declared, plants

SOURCE = Path(__file__).parents[3]
#: Packages that read files, without recipes (other classes of Spack's) and tools for developers.
PACKAGES = ("postprocess", "site_configs", "spack_envs", "reframe_checks")
#: What reads in its own way: the reader itself, files of the kernel, a tool that is given a table by hand.
OWN_WAY = {
    "postprocess/base/files.py",
    "postprocess/base/processes.py",
    "site_configs/topology/gpus.py",
    "site_configs/topology/machine.py",
    "postprocess/stats/priors.py",
}
WRITING = ("a", "w", "x")  #: one of these is in the mode of a file that is opened to be written


@pytest.fixture(params=["pipe", "device"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A pipe that nobody writes to, or a link to a device without end."""
    path = tmp_path / "s.parquet"
    os.mkfifo(path) if request.param == "pipe" else path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (files.read_regular, OSError),
        (lambda path: reference_file.read_text(path, "restore it"), ValueError),
        (lambda path: list(iter_lines(path)), RecordError),
        (read_launch_file, UsageError),
        (store.read_session, UsageError),
        (load_summary, UsageError),
        (load_session_priors, UsageError),
        (lambda path: describe_file(path.parent, path.name), OSError),
        (alarms.read_alarm_log, UsageError),
    ],
)
def test_it_is_refused_by_name(odd: Path, read: Callable[[Path], object], error: type[Exception]):
    with pytest.raises(error, match="is not a regular file") as refused:
        read(odd)
    assert str(odd) in str(refused.value)


@plants("files", "a pipe or an endless device in the place of a file",
        "a report that is imported", "", 2, "is not a regular file; name a report")  # fmt: skip
def test_it_is_no_report_to_import(odd: Path, declared: Declared) -> None:
    with declared.raises(UsageError):
        read_imported_tests(odd)


def test_it_is_no_result_and_no_exit_code(odd: Path) -> None:
    assert outcome.read_contents(odd) is None
    assert outcome.read_exit_code(odd) is None
    assert query.read_intact_index(odd) is None
    assert read_report(odd) == []
    assert launch_costs.read_elapsed_seconds(odd) is None
    assert read_stored_inventory(odd) is None
    assert read_facts(odd) == ExecutableFacts()
    assert not is_own_output(odd)
    odd.rename(odd.with_name(ENDED))
    assert read_ended(odd.parent) is None
    odd.with_name(ENDED).rename(odd.with_name(installation.FAILURE))
    assert installation.read_failure(odd.parent) is None


def find_other_reads(path: Path) -> Iterator[str]:
    """Find where a module reads a file by other means than ``postprocess.base.files``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not name.startswith(("read_text", "read_bytes", "open", "copyfile")):
            continue  # to write out each call of the sources takes seconds
        called = ast.unparse(node.func)
        modes = {each.value for each in node.args if isinstance(each, ast.Constant)}
        writes = any(str(mode).startswith(WRITING) for mode in modes)
        ours = called in (name, f"files.{name}")
        reads = name in ("read_text", "read_bytes") and not ours
        in_memory = any(keyword.arg == "fileobj" for keyword in node.keywords)
        opens = name == "open" and called not in ("os.open", "webbrowser.open") and not writes and not in_memory
        if reads or opens or called.startswith("shutil.copyfile"):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}: {called}"


def test_every_file_is_read_by_the_one_reader() -> None:
    paths = [path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))]
    own = [path for path in paths if "spack_repo" not in path.parts]
    own = [path for path in own if str(path.relative_to(SOURCE)) not in OWN_WAY]
    assert len(own) > 200
    assert [found for path in own for found in find_other_reads(path)] == []


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(files.LARGEST + 1)
    with pytest.raises(OSError, match="is larger than"):
        files.read_regular(path)
