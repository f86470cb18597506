"""Which scheduler a machine has."""

from __future__ import annotations

import pytest

from site_configs.schedulers import detect
from site_configs.schedulers.detect import SchedulerError, ask_command, detect_scheduler
from tests.support.factories.scheduler import CRAY, PBS, answering
from tests.support.fake_mpis import script


def machine(*commands: str):
    """Whether a command is installed on a machine that has these."""
    return set(commands).__contains__


def test_a_machine_without_a_scheduler():
    assert detect_scheduler(answering({}), machine()) is None


@pytest.mark.parametrize(
    ("commands", "outputs", "title"),
    [
        (("sinfo",), CRAY, "Slurm"),
        (("sinfo", "pbsnodes", "qstat"), CRAY, "Slurm"),  # Slurm's stand-ins for PBS
        (("pbsnodes",), PBS, "PBS"),
        (("bqueues",), {}, "LSF"),
    ],
)
def test_each_scheduler_is_known_by_its_command(commands, outputs, title):
    assert detect_scheduler(answering(outputs), machine(*commands)).title == title


@pytest.mark.parametrize("command", ["sinfo", "pbsnodes"])
def test_a_scheduler_that_does_not_answer_is_not_taken_for_none(command: str):
    with pytest.raises(SchedulerError, match="failed with exit code 1"):
        detect_scheduler(answering({}), machine(command))


def test_a_scheduler_that_answers_nonsense_is_not_taken_for_none():
    with pytest.raises(SchedulerError, match="sinfo tells of no partition"):
        detect_scheduler(answering(CRAY | {"sinfo": "what?"}), machine("sinfo"))


def test_a_command_that_hangs_is_ended(tmp_path, monkeypatch):
    path = script(tmp_path / "sinfo", "sleep 600")
    monkeypatch.setattr(detect, "ASK_SECONDS", 0.3)
    with pytest.raises(detect.ProbeError, match="sinfo did not end within"):
        ask_command([str(path), "--noheader"])


def test_what_the_user_chooses_to_be_shown_hides_no_queue(tmp_path, monkeypatch):
    monkeypatch.setenv("SINFO_PARTITION", "mine")
    monkeypatch.setenv("SLURM_CLUSTERS", "another")
    path = script(tmp_path / "sinfo", 'echo "<$SINFO_PARTITION$SLURM_CLUSTERS>"')
    assert ask_command([str(path)]).strip() == "<>"
