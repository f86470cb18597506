"""Faults that tests plant: declared on the test, checked by it, and listed in ``docs/faults.md``.

``@plants(...)`` declares what is planted and what must come. The fixture ``declared`` holds what came
against that. A test that declares a fault and passes without having checked it fails.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.model.verdict import RecordError, Verdict, is_healthy
from spack_envs.layout import SourceError, SpackEnvironmentError
from tests.support.plumbline_runner import Ended

MARK = "plants"
ANYTHING = "…"  #: in a message: any text
OR = " or "  #: between verdicts, where it is chance which of them comes
EITHER = " | "  #: the same of messages
REFUSED = 2  #: exit status of a command that refuses its input
#: Kinds of faults, in the order of the page.
KINDS = {
    "stale": "Stale and foreign results",
    "data": "Wrong data",
    "programs": "Programs that crash, hang or leave early",
    "output": "Damaged output of programs",
    "references": "Wrong references",
    "speed": "Slow machines",
    "lost": "Kills and full disks",
    "files": "Damaged files",
    "offers": "Forged offers and broken run rules",
    "security": "Texts that a shell would run",
    "environment": "Hostile environments",
    "use": "Wrong use",
    "schedulers": "Sites and schedulers",
    "builds": "Builds, wheels and mirrors",
}


@dataclass(frozen=True)
class Fault:
    """A planted fault and what must come of it."""

    kind: str  #: a key of ``KINDS``
    planted: str  #: what
    where: str  #: the file, program or moment that it is planted in
    verdict: str  #: of all cases that it touches; empty where no case is judged
    status: int  #: exit status of the command
    message: str  #: what is told; ``…`` stands for any text

    def __post_init__(self) -> None:
        known = {str(verdict) for verdict in Verdict}
        assert self.kind in KINDS, f"{self.kind}: no kind of fault; one of {', '.join(KINDS)}"
        assert not self.verdict or set(self.verdict.split(OR)) <= known, self.verdict
        assert self.planted and self.where and self.message, self

    def is_told(self, text: str) -> bool:
        """Return whether a text has the message, in one line or wrapped with an indent."""
        messages = self.message.split(EITHER)
        patterns = (re.escape(message).replace(ANYTHING, ".*") for message in messages)
        texts = (text, re.sub(r"\n +", " ", text))
        return any(re.search(pattern, each) for pattern in patterns for each in texts)


def plants(
    kind: str, planted: str, where: str, verdict: str, status: int, message: str
) -> pytest.MarkDecorator:
    """Declare on a test, or on one of its parameters, the fault that it plants; as literals, to be listed."""
    return pytest.mark.plants(Fault(kind, planted, where, verdict, status, message))


def each_of(faults: Mapping[Any, pytest.MarkDecorator]) -> list[Any]:
    """Return each key of a table of declarations as a parameter that has its mark."""
    return [pytest.param(key, marks=mark) for key, mark in faults.items()]


@dataclass
class Declared:
    """A fault of a test that runs, and whether the test has held what came against it."""

    fault: Fault
    checked: bool = False

    def check(self, verdicts: Iterable[str], status: int, said: Iterable[str]) -> None:
        """Hold verdicts of the cases touched, the exit status and every text told against the declaration."""
        told, verdicts = list(said), {str(verdict) for verdict in verdicts}
        expected = set(filter(None, self.fault.verdict.split(OR)))
        assert verdicts <= expected and bool(verdicts) == bool(expected), (verdicts, told)
        assert status == self.fault.status, (status, told)
        assert told and all(map(self.fault.is_told, told)), (self.fault.message, told)
        self.checked = True

    def check_session(self, ended: Ended, **touched: str) -> None:
        """Hold a session against it: all its cases, or those that it touches, by routine or environment."""
        assert "Traceback" not in ended.errors, ended.errors
        cases = [case for case in ended.summary["cases"] if touched.items() <= case.items()]
        verdicts, reasons = ({case[key] for case in cases} for key in ("verdict", "reason"))
        self.check(verdicts, ended.status, reasons)

    def check_refusal(self, ended: Ended) -> None:
        """Hold a command against it that told one line and did nothing."""
        assert ended.errors.count("\n") == 1 and ended.errors.startswith("plumbline: "), ended
        self.check((), ended.status, [ended.errors])

    def check_error(self, error: BaseException) -> None:
        """Hold an error against it that a command tells in one line, or that fails cases."""
        if isinstance(error, RecordError):
            self.check_case(error.verdict, error.message)
            return
        assert isinstance(error, UsageError | SpackEnvironmentError), error
        assert "\n" not in str(error)
        if isinstance(error, UsageError):
            self.check((), REFUSED, [str(error)])
        else:  # what was not built
            unbuilt = Verdict.SKIPPED if isinstance(error, SourceError) else Verdict.INCOMPLETE
            self.check_case(unbuilt, str(error))

    @contextmanager
    def raises(self, error: type[Exception], match: str | None = None) -> Iterator[pytest.ExceptionInfo]:
        """Hold the error against it that is raised inside."""
        with pytest.raises(error, match=match) as caught:
            yield caught
        self.check_error(caught.value)

    def check_case(self, verdict: Verdict | str, reason: str) -> None:
        """Hold a case against it, with the exit status that its verdict has alone."""
        status = int(not is_healthy(Verdict(verdict), strict=False))
        self.check([verdict], status, [reason])


@pytest.fixture
def declared(request: pytest.FixtureRequest) -> Declared:
    """The one fault that the test declares."""
    (mark,) = request.node.iter_markers(MARK)
    request.node.stash[DECLARED] = Declared(mark.args[0])
    return request.node.stash[DECLARED]


DECLARED = pytest.StashKey[Declared]()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that declares a fault and passes without having checked it."""
    result = yield
    if pyfuncitem.get_closest_marker(MARK):
        declared = pyfuncitem.stash.get(DECLARED, None)
        assert declared and declared.checked, f"{pyfuncitem.nodeid}: declares a fault unchecked"
    return result
