"""Whose host this is, as the site files say."""

import time
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from site_configs.validation import site_files
from site_configs.validation.site_files import (
    find_sites_for_host,
    read_host_patterns,
    read_site,
    read_usable_site,
)
from tests.support.factories.scheduler import CRAY
from tests.support.factories.site import OPENMPI, slurm, text_of
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.support.request import ask

TEXT = "site_configuration = site('x', hostnames={})\n"


@pytest.mark.parametrize(
    ("hostnames", "host", "found"),
    [
        ('["login1"]', "login1", True),
        ('["login1"]', "login1.cluster", True),  # as ReFrame matches: from the start
        ('["login1"]', "mylogin1", False),
        (r'["uan\\d+", "head"]', "head", True),
        ('["("]', "(", False),
        ("[1, None]", "1", False),
        ("NAMES", "NAMES", False),
        ("[]", "", False),
    ],
)
def test_a_site_is_for_the_hosts_that_it_names(tmp_path: Path, hostnames, host, found):
    (tmp_path / "mine.py").write_text(TEXT.format(hostnames))
    (tmp_path / "broken.py").write_text("hostnames=[")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    assert find_sites_for_host(tmp_path, host) == (["mine"] if found else [])


def test_a_file_that_is_not_there_is_for_no_host(tmp_path: Path):
    assert list(read_host_patterns(tmp_path / "none.py")) == []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound site file of a Cray."""
    path = tmp_path / "mine.py"
    path.write_text(text_of(slurm(CRAY, OPENMPI)))
    return path


@plants("schedulers", "a file that exits, raises, is killed or writes into the reader", "a site file",
        "", 2, ".py: ")  # fmt: skip
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import os\nos._exit(3)\n", "ended the process that reads it: exit code 3; take out what"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "exit code -9; take out what"),
        (
            "import os, sys\nprint('no licence', file=sys.stderr, flush=True)\nos._exit(3)\n",
            "ended the process that reads it: no licence; take out what ends it (an exit, a signal)",
        ),
        ("while True: pass\n", "does not end within 1 s when it is run; write down in it what"),
    ],
)
def test_a_file_that_ends_its_reader_is_one_line(work, path, monkeypatch, text, complaint, declared: Declared):
    monkeypatch.setattr(site_files, "READ_SECONDS", 1 if "while" in text else 60)
    path.write_text(text)
    with declared.raises(UsageError) as refused:
        read_site(work, path)
    assert str(refused.value) == f"{path}: " + str(refused.value).partition(": ")[2]
    assert complaint in str(refused.value)


def test_a_site_is_read_as_it_is_and_in_no_session(work, path, monkeypatch):
    """Within a session it would apply to every host, and only looked at it would have no modules.

    A quarter of the time to read it would be numpy's, which no site needs.
    """
    ask(monkeypatch, only_looking=True)
    path.write_text(f"import sys\nassert 'numpy' not in sys.modules\n{path.read_text()}")
    system = read_site(work, path).configuration["systems"][0]
    assert system["hostnames"] == ["login\\d+"] and system["modules_system"] == "lmod"


def test_a_site_that_makes_no_configuration_is_refused_with_its_first_fault(work, path):
    path.write_text(text_of(slurm(CRAY, OPENMPI)).replace("topology=", "topologie="))
    told = read_site(work, path)
    assert told.configuration is None
    with pytest.raises(UsageError) as refused:
        read_usable_site(work, path)
    first = told.faults[0]
    fault = f"{path}:{first.line}: {first.text} (all that is wrong: ./plumbline site check {path})"
    assert str(refused.value) == fault


def is_running(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def ended(file: Path) -> bool:
    """Whether the process of this number has ended; it may take a moment."""
    process, deadline = int(file.read_text()), time.monotonic() + 10
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(process)


#: Starts a process and writes its number to a file. What is in the group is killed with it, whatever its
#: environment; what has left the group is found by its environment.
START = """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "777"], {how})
open({file!r}, "w").write(str(child.pid))
"""
OTHER_ENVIRONMENT = "env={'PATH': os.environ['PATH']}"


@plants("schedulers", "a file that does not end", "a site file", "", 2,
        "does not end within 4 s when it is run")  # fmt: skip
def test_no_child_outlives_a_file_that_does_not_end(work, path, tmp_path, monkeypatch, declared: Declared):
    monkeypatch.setattr(site_files, "READ_SECONDS", 4)
    hows = ("", "start_new_session=True", OTHER_ENVIRONMENT)
    children = {str(tmp_path / f"child{number}"): how for number, how in enumerate(hows)}
    starts = [START.format(how=how, file=file) for file, how in children.items()]
    path.write_text("".join(starts) + "while True: signal.pause()\n")
    with declared.raises(UsageError):
        read_site(work, path)
    assert all(ended(Path(file)) for file in children)


@plants("schedulers", "a file that leaves a process running", "a site file", "", 2,
        "mine.py: leaves processes running (sleep); let them")  # fmt: skip
@pytest.mark.parametrize("how", ["", "start_new_session=True"])
def test_a_file_that_leaves_a_process_is_told_so(work, path, tmp_path, how, declared: Declared):
    """ReFrame reads the file too, and would wait for it: it holds what ReFrame prints to."""
    file = tmp_path / "child"
    path.write_text(START.format(how=how, file=str(file)) + path.read_text())
    with declared.raises(UsageError):
        read_site(work, path)
    assert ended(file)


def test_a_process_of_the_group_is_killed_whatever_its_environment(work, path, tmp_path):
    file = tmp_path / "child"
    path.write_text(START.format(how=OTHER_ENVIRONMENT, file=str(file)) + path.read_text())
    read_site(work, path)
    assert ended(file)


def test_what_a_file_prints_is_no_part_of_it(work, path):
    path.write_text("print('x' * 1_000_000)\n" + path.read_text())
    assert read_site(work, path).faults == []


@plants("use", "a module that sites share", "`--site`", "", 2,
        "is a module that sites use, and no site")  # fmt: skip
@pytest.mark.parametrize("name", ["common", "pbs", "simgrid"])
def test_a_module_that_sites_use_is_no_site(work, name, declared: Declared):
    with declared.raises(UsageError, match=r"is a module that sites use, and no site; .*simulated"):
        read_site(work, ROOT / "site_configs" / f"{name}.py")
