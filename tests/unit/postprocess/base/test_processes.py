"""What a session leaves running is found by its environment and ended; nothing else is."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from postprocess.base import processes
from postprocess.base.processes import end_processes, find_processes

SESSION = "PLUMBLINE_SESSION"
WAIT = "import signal, sys; {first}; print('ready', flush=True); signal.pause()"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
DETACHED = "import os; os.setsid()"
DAEMON = "import os; os.fork() and os._exit(0); os.setsid()"


@pytest.fixture
def value(request: pytest.FixtureRequest) -> str:
    """The name of a session that nobody else has."""
    return f"/sessions/{os.getpid()}-{request.node.name}"


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that waits, with this session in its environment; it is ended afterwards."""
    begun: list[subprocess.Popen[str]] = []

    def start(session: str | None, first: str = "pass", **more: str) -> subprocess.Popen[str]:
        own = {key: text for key, text in os.environ.items() if key != SESSION}
        own |= {SESSION: session} if session is not None else {}
        process = subprocess.Popen(
            [sys.executable, "-c", WAIT.format(first=first)], env=own | more, stdout=subprocess.PIPE, text=True
        )
        begun.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def adopt_orphans() -> Iterator[None]:
    """Make this process the parent of daemons, so that it can see how they end."""
    set_child_subreaper = 36  # prctl(2)
    ctypes.CDLL(None).prctl(set_child_subreaper, 1)
    yield
    ctypes.CDLL(None).prctl(set_child_subreaper, 0)


def name_of(process: subprocess.Popen[str]) -> str:
    with open(f"/proc/{process.pid}/comm") as file:
        return file.read().strip()


@pytest.mark.parametrize("first", ["pass", DETACHED])
def test_a_process_of_the_session_is_ended_and_named(begin, value, first):
    process = begin(value, first)
    name = name_of(process)
    assert find_processes(SESSION, value) == {process.pid: name}
    assert end_processes(SESSION, value) == [name]
    assert process.wait() == -signal.SIGTERM
    assert find_processes(SESSION, value) == {}


def test_a_process_that_ignores_the_polite_request_is_ended_all_the_same(begin, value, monkeypatch):
    monkeypatch.setattr(processes, "GRACE", 0.2)
    stubborn, willing = begin(value, STUBBORN), begin(value)
    assert len(end_processes(SESSION, value)) == 2
    assert stubborn.wait(timeout=60) == -signal.SIGKILL
    assert willing.wait() == -signal.SIGTERM


def test_a_daemon_with_neither_parent_nor_terminal_is_ended(begin, value):
    parent = begin(value, DAEMON)
    parent.wait()
    (daemon,) = find_processes(SESSION, value)
    assert daemon != parent.pid
    assert len(end_processes(SESSION, value)) == 1
    assert os.WTERMSIG(os.waitpid(daemon, 0)[1]) == signal.SIGTERM


def test_what_a_process_of_the_session_started_is_of_the_session(begin, value):
    first = "import subprocess; child = subprocess.Popen(['sleep', '60'])"
    process = begin(value, first)
    deadline = time.monotonic() + 60
    while len(find_processes(SESSION, value)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)  # between fork and exec a process shows no environment
    (child,) = find_processes(SESSION, value).keys() - {process.pid}
    assert len(end_processes(SESSION, value)) == 2
    assert process.wait() == -signal.SIGTERM
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
    assert find_processes(SESSION, value) == {}


def test_others_are_left_alone(begin, value):
    others = [
        begin(None),
        begin(value + "1"),
        begin("x" + value),
        begin(None, OTHER_SESSION=value),
        begin(None, TEXT=f"{SESSION}={value}"),
        begin(None, **{f"NOT_{SESSION}": value}),
    ]
    mine = begin(value)
    assert len(end_processes(SESSION, value)) == 1
    assert mine.wait() == -signal.SIGTERM
    assert [process.poll() for process in others] == [None] * len(others)


def test_sessions_of_one_work_directory_are_found_by_their_prefix(begin, value):
    mine = [begin(f"{value}/sessions/{name}") for name in "ab"]
    other = begin(f"{value}-other/sessions/a")
    assert end_processes(SESSION, f"{value}/sessions") == []
    assert len(end_processes(SESSION, f"{value}/sessions/", prefix=True)) == 2
    assert [process.wait() for process in mine] == [-signal.SIGTERM] * 2
    assert other.poll() is None


def test_this_process_is_never_ended():
    """The variable with which this process itself was started, whatever it is."""
    with open("/proc/self/environ") as file:
        variable, _, text = file.read().partition("\0")[0].partition("=")
    assert os.getpid() not in find_processes(variable, text)


def test_a_name_that_is_no_text_does_not_stop_the_search(begin, value):
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff\\xfe\\n', 0, 0, 0)"
    process = begin(value, rename)
    assert len(end_processes(SESSION, value)) == 1
    assert process.wait() == -signal.SIGTERM
