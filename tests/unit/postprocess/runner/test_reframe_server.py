"""Passes of ReFrame are forks of one process, which may die or be busy."""

import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from postprocess.base.processes import find_processes, start_module
from postprocess.runner.reframe_server import ReframePass, ReframeServer
from site_configs.schema.variables import SESSION


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Path]:
    """A folder of sessions, of a process that has no server yet."""
    if ReframeServer.running:
        ReframeServer.running.stop()
    yield tmp_path
    ReframeServer.find(tmp_path).stop()


def start(sessions: Path, script: str) -> ReframePass:
    (sessions / "played.py").write_text(script, encoding="utf-8")
    command = [*start_module(sessions, "played"), "a word"]
    return ReframeServer.find(sessions).start(command, sessions, {"NAME": "\udcff", **os.environ})


def test_a_pass_has_its_own_words_folder_environment_and_status(sessions):
    ended = start(
        sessions, "import os, sys; print(sys.argv[1:], os.getcwd(), repr(os.environ['NAME'])); sys.exit(7)"
    )
    assert ended.stdout.read() == f"['a word'] {sessions} '\\udcff'\n"
    assert (ended.wait(), ended.poll()) == (7, 7)


def test_passes_do_not_see_each_other(sessions):
    first = start(sessions, "import os, json; json.spoiled = os.environ['SPOILED'] = 'yes'")
    assert first.wait() == 0
    second = start(sessions, "import os, json; print(hasattr(json, 'spoiled'), 'SPOILED' in os.environ)")
    assert second.stdout.read() == "False False\n"
    assert second.wait() == 0


def test_a_pass_that_was_left_running_does_not_hold_up_the_next(sessions):
    left = start(sessions, "import time; time.sleep(60)")
    begun = time.monotonic()
    after = start(sessions, "print('done')")
    assert (after.stdout.read(), after.wait()) == ("done\n", 0)
    assert left.wait() == -signal.SIGTERM
    assert time.monotonic() - begun < 50


def test_a_pass_whose_server_dies_did_not_end_well_and_the_next_has_another(sessions):
    killed = start(sessions, "import time; time.sleep(60)")
    assert ReframeServer.running
    os.kill(ReframeServer.running.process.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert killed.stdout.read() == ""  # its process has ended as well
    assert start(sessions, "pass").wait() == 0


def test_a_server_that_dies_while_it_loads_loses_only_the_pass_that_waits_for_it(sessions):
    server = ReframeServer.find(sessions)
    with server.process:
        Timer(0.05, server.process.kill).start()
        assert start(sessions, "pass").wait() == -signal.SIGKILL
        after = start(sessions, "print('done')")
    assert (after.stdout.read(), after.wait()) == ("done\n", 0)


def test_a_terminal_that_closes_or_interrupts_ends_no_pass_of_a_command_that_goes_on(sessions):
    """Send none of a terminal's signals to ReFrame: after nohup or behind & its caller ignores them."""
    script = "import os; print(os.getsid(0))"
    assert int(start(sessions, script).stdout.read()) != os.getsid(0)


def test_a_command_with_many_open_files_and_variables_has_passes(sessions, monkeypatch):
    for name in "ABCDE":
        monkeypatch.setenv(f"LARGE_{name}", "x" * 10**5)
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(least, min(2048, most)), most))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    try:
        ended = start(sessions, "import os; print(sum(map(len, os.environ.values())) > 5 * 10**5)")
        assert (ended.stdout.read(), ended.poll(seconds=10.0)) == ("True\n", 0)
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


def test_the_next_command_finds_what_a_killed_one_left(sessions):
    left = start(sessions, "import time; time.sleep(60)")
    deadline = time.monotonic() + 30.0
    while left.pid not in find_processes(SESSION, f"{sessions}/", prefix=True) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left.pid in find_processes(SESSION, f"{sessions}/", prefix=True)
