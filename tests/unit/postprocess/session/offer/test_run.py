"""What a pass of an offer tells of its launches."""

from __future__ import annotations

from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.verdict import Verdict
from postprocess.session.offer.run import describe_failed, sum_job_seconds
from tests.support.factories.launch import planned


def launched_in(directory: str, seconds: float, reason: str = "it ended") -> FinishedLaunch:
    outcome = fail_launch(Verdict.CRASHED, reason)
    return FinishedLaunch(planned(), outcome, seconds, directory, {})


def test_each_reason_of_failed_launches_is_told_once() -> None:
    reasons = ("it did not build", "no end within 60 s", "it did not build")
    launched = [launched_in("stage", 0.0, reason) for reason in reasons]
    assert describe_failed(launched) == [
        "2 launches: it did not build",
        "1 launch: no end within 60 s",
    ]


def test_a_job_of_several_starts_counts_once() -> None:
    launched = [launched_in("one", 60.0), launched_in("one", 60.0), launched_in("two", 5.0)]
    assert sum_job_seconds(launched) == 65.0
