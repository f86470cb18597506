"""Records of another launch are no result of this one, however whole they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.judging.outcome import assess_launch
from tests.support.factories import record
from tests.support.factories.launch import leave, planned
from tests.support.faults import plants

Records = list[dict[str, Any]]
LAUNCH = replace(planned(), token="a1", options=("--trials=51",))
BEGAN = 1795251600  #: 2026-11-21T09:00:00Z, when the run record was written
SPAN = f"{BEGAN}\n{BEGAN + 20}\n"


def own() -> Records:
    """The records of the launch."""
    run, *cases, end = record.launch(token="a1", command=["mpicost", "--trials=51", "--token=a1"])
    return [run, *cases, end | {"token": "a1"}]


def with_run(**changes: Any) -> Callable[[], Records]:
    return lambda: [own()[0] | changes, *own()[1:]]


def with_end(**changes: Any) -> Callable[[], Records]:
    return lambda: [*own()[:-1], own()[-1] | changes]


def left(session: Path, records: Records, span: str | None = SPAN) -> None:
    leave(session, LAUNCH, records)
    if span is not None:
        LAUNCH.span(session).write_text(span)


@pytest.mark.parametrize("span", [SPAN, f"{BEGAN + 50}\n{BEGAN + 60}\n"])
def test_the_records_of_a_launch_are_its_own(tmp_path: Path, span: str) -> None:
    """The clocks of two nodes may differ a little."""
    left(tmp_path, own(), span)
    assert assess_launch(LAUNCH, tmp_path).reason == ""


@plants("stale", "without its token, of another command, or of another time",
        "records of mpicost", "incorrect", 1,
        "the records are not of this launch | the records tell of | does not tell when the "
        "launch began and ended")  # fmt: skip
@pytest.mark.parametrize(
    ("records", "span", "said"),
    [
        (record.launch, SPAN, "have not its token"),  # started without one
        (with_run(token="b2"), SPAN, "have not its token"),
        (with_end(token="b2"), SPAN, "have not its token"),
        (with_run(command=["mpicost", "--trials=5", "--token=a1"]), SPAN, "command is another"),
        (own, f"{BEGAN + 90}\n{BEGAN + 120}\n", "and the launch was from 2026-11-21T09:01:30Z"),
        (own, f"{BEGAN - 200}\n{BEGAN - 100}\n", "set the clocks of the nodes"),
        (with_end(ended_utc="2026-11-21T08:59:59Z"), SPAN, "set the clocks of the nodes"),
        (own, None, "does not tell when the launch began and ended"),
        (own, f"{BEGAN}\n", "does not tell when the launch began and ended"),
    ],
)
def test_records_of_another_launch_are_incorrect(tmp_path, records, span, said, declared):
    left(tmp_path, records(), span)
    found = assess_launch(LAUNCH, tmp_path)
    assert said in found.reason
    declared.check_case(found.verdict, found.reason)
