"""What all tests share: fixtures, marks by folder, which tests run; what did not is counted at the end."""

import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.machine_load import BESIDE_OTHERS
from tests.support.faults import declared, pytest_pyfunc_call
from tests.support.paths import ROOT
from tests.support.shared_files import open_folder

#: Of all tests: the fault that a test declares, and that it is checked.
__all__ = ["declared", "pytest_pyfunc_call"]

# Tests run beside each other: a calibration of theirs, in commands too, does not wait for a quiet machine.
os.environ[BESIDE_OTHERS] = "1"
# Ranks lie now here and now there, beside other tests and on a virtual machine. No verdict may hang on it.
os.environ["MPICOST_CORE_LATENCY"] = "off"

# A busy machine is slow, and that is no fault of what is tested.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


#: Marks of all tests of a folder, or of a file.
MARKS = {
    "tests/integration/mpi/test_gpu.py": ("long",),
    "tests/integration/mpi/test_injected_faults.py": ("long",),
    "tests/integration/mpi/test_layers.py": ("long",),
    "tests/integration/mpi/test_plain_reframe.py": ("long",),
    "tests/integration/mpi/test_standard_abi.py": ("long",),
    "tests/integration/mpicost/test_calls_in_a_row.py": ("long",),
    "tests/integration/mpicost/test_controls.py": ("long",),
    "tests/integration/mpicost/test_delay_library.py": ("long",),
    "tests/integration/mpicost/test_interposed.py": ("long",),
    "tests/integration/mpicost/test_kernels.py": ("long",),
    "tests/integration/mpicost/test_usage_errors.py": ("long",),
    "tests/integration/mpicost/test_witness_library.py": ("long",),
    "tests/integration/test_page_in_browser.py": ("long",),
    "tests/integration/postgres": ("long",),
    "tests/integration/schedulers": ("long",),
    "tests/integration/simgrid": ("long",),
    "tests/integration/slurm": ("long",),
    "tests/integration/spack": ("long",),
    "tests/statistical": ("long",),
}
INTEGRATION = "tests/integration"  #: where ``./plumbline test`` looks for tests that are alone
#: The longest first, so that no core waits for another at the end.
ORDER = ("tests/integration/spack", "tests/integration", "tests")
#: Tests that take long, of all that were found. Not known to the process that only hands tests out.
LONG = pytest.StashKey[int]()


def pytest_configure() -> None:
    """Make what the processes of this session share."""
    open_folder()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``./plumbline test`` says to choose tests."""
    group = parser.getgroup("plumbline")
    group.addoption("--short", metavar="FILE", help="leave out what takes long; note in FILE what has passed")
    group.addoption("--rest", metavar="FILE", help="leave out what has passed by this file")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by folder and file, before ``-m`` chooses among them; leave out what is not asked for."""
    for item in items:
        file = Path(item.path).relative_to(config.rootpath)
        for mark in (*MARKS.get(file.parent.as_posix(), ()), *MARKS.get(file.as_posix(), ())):
            item.add_marker(mark)
        if item.get_closest_marker("alone") and not item.nodeid.startswith(INTEGRATION):
            raise pytest.UsageError(f"{item.nodeid}: no run has tests that are alone outside of {INTEGRATION}")
    items.sort(key=rank)
    left_out = {item.nodeid for item in items if item.get_closest_marker("long")}
    config.stash[LONG] = len(left_out)
    if rest := config.getoption("rest"):
        left_out = set(Path(rest).read_text(encoding="utf-8").splitlines())
        left_out -= {item.nodeid for item in items if item.get_closest_marker("machine")}
    if rest or config.getoption("short"):
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in left_out])
        items[:] = [each for each in items if each.nodeid not in left_out]


def rank(item: pytest.Item) -> int:
    """The place of a test's folder in the order."""
    places = (place for place, folder in enumerate(ORDER) if item.nodeid.startswith(folder))
    return next(places, len(ORDER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out or skipped, and why, even where ``-ra`` is off."""
    file = config.getoption("short")
    if file and not hasattr(config, "workerinput"):  # whoever hands tests out hears of all
        passed, failed, error = (
            {report.nodeid for report in terminalreporter.stats.get(word, [])}
            for word in ("passed", "failed", "error")
        )
        with open(file, "a", encoding="utf-8") as names:
            names.writelines(f"{name}\n" for name in sorted(passed - failed - error))
        if number := config.stash.get(LONG, 0):
            line = f"LEFT OUT {number} tests that take long: ./plumbline test --all"
            terminalreporter.write_line(line, yellow=True, bold=True)
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"SKIPPED {number} tests: {reason}", yellow=True, bold=True)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    """An empty work directory beside this source."""
    return WorkDirectory(tmp_path / "home", ROOT)


@pytest.fixture
def progress() -> Progress:
    """What a person is told goes into ``progress.console.file``, no line of it wrapped."""
    return Progress(Console(file=io.StringIO(), width=10_000))


@pytest.fixture
def sigterm_handler() -> Iterator[None]:
    """``main`` handles SIGTERM for its process, which here is that of the tests."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
