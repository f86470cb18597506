"""What transports of a night mean beside those of its calibration, and in a node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from postprocess.model.case import Case
from postprocess.model.launch import fail_launch
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TransportPath
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.nightly.transports import (
    KnownTransports,
    TransportProof,
    prove_measured,
    read_known,
)
from site_configs.schedulers.job_end import Ending
from site_configs.schema.transports import ExpectedTransport
from tests.support.factories.launch import finished
from tests.support.faults import Declared, plants

NODE = "s:p", "mpi", "node"
CASE = Case("s", "p", "mpi", "mpicost", "pingpong", 1, "warm", "window", 2, 2, 8)
PASSED = CaseResult(CASE, Verdict.PASS)


def path_of(*transports: str, layer: str = "openmpi") -> TransportPath:
    return TransportPath("node", layer, transports, 1, "the library's line")


def judge(proof: TransportProof) -> CaseResult:
    (result,) = proof.apply([PASSED])
    return result


@plants("environment", "TCP in a node of which the site file says nothing", "Open MPI",
        "not-comparable", 1, "where memory is shared; …{'node': 'openmpi:tcp'} in the site file")  # fmt: skip
def test_tcp_in_a_node_is_not_comparable_unless_it_is_expected(declared: Declared) -> None:
    proof = TransportProof({NODE: [path_of("tcp")]})
    result = judge(proof)
    declared.check_case(result.verdict, result.reason)
    assert proof.find_faults() == {"mpi": result.reason}
    asked = replace(proof, expected={NODE: ExpectedTransport.parse("openmpi:tcp")})
    assert judge(asked) == PASSED
    assert asked.find_faults() == {}


@pytest.mark.parametrize("transports", [("sm",), ("sm", "tcp"), ("sysv", "cma"), ()])
def test_what_shares_memory_too_is_not_tcp(transports) -> None:
    assert judge(TransportProof({NODE: [path_of(*transports)]})) == PASSED


def test_small_messages_by_tcp_beside_copied_large_ones_are_tcp() -> None:
    proof = TransportProof({NODE: [path_of("tcp", "cma", layer="ucx")]})
    assert judge(proof).verdict is Verdict.NOT_COMPARABLE


def test_what_is_set_by_hand_tells_nothing_of_other_sessions(tmp_path: Path) -> None:
    file = tmp_path / "transports.json"
    TransportProof({NODE: [path_of("posix", layer="ucx")]}, by_hand=("mpi",)).remember(file, True)
    assert not file.exists()
    known = KnownTransports(places={" ".join(NODE): ("ucx:sysv",)})
    night = TransportProof({NODE: [path_of("posix", layer="ucx")]}, known=known)
    assert judge(night).verdict is Verdict.NOT_COMPARABLE
    assert judge(replace(night, by_hand=("mpi",))) == PASSED


@plants("environment", "another transport than when the references were taken", "UCX in a node",
        "not-comparable", 1, "uses ucx:posix, and used ucx:sysv+cma before; …run")  # fmt: skip
def test_a_night_is_held_against_the_transports_of_its_calibration(
    tmp_path: Path, declared: Declared
) -> None:
    file = tmp_path / "transports.json"
    calibrated = TransportProof({NODE: [path_of("sysv", "cma", layer="ucx")]})
    calibrated.remember(file, afresh=True)
    night = TransportProof({NODE: [path_of("posix", layer="ucx")]}, known=read_known(file))
    result = judge(night)
    declared.check_case(result.verdict, result.reason)
    night.remember(file, afresh=False)  # no night changes what is known
    assert judge(replace(night, known=read_known(file))) == result
    night.remember(file, afresh=True)
    assert judge(replace(night, known=read_known(file))) == PASSED


def test_what_no_library_tells_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "transports.json"
    TransportProof({NODE: []}).remember(file, afresh=True)
    assert not file.exists()
    TransportProof({NODE: [path_of("sm")]}).remember(file, afresh=True)
    assert judge(TransportProof({NODE: []}, known=read_known(file))) == PASSED


def test_a_damaged_file_is_known_anew(tmp_path: Path) -> None:
    file = tmp_path / "transports.json"
    file.write_text("{", encoding="utf-8")
    assert read_known(file) == KnownTransports()


@pytest.mark.parametrize("job_end", [Ending.TAKEN_AWAY, Ending.NEVER_STARTED])
def test_nothing_is_started_where_a_job_lost_its_nodes(tmp_path: Path, job_end: Ending) -> None:
    well = finished(tmp_path)
    lost = finished(tmp_path, outcome=fail_launch(Verdict.CRASHED, "its node died", job_end))
    no_context = cast("SessionContext", None)  # whatever starts a session needs one
    proof = prove_measured(no_context, Selection(Path("site.py")), [well, lost])
    assert [*proof.describe()] == [
        f"transports on {well.launch.partition}: not read, for a job there lost its nodes or got none"
    ]
    with pytest.raises(AttributeError):
        prove_measured(no_context, Selection(Path("site.py")), [well])


def test_what_a_command_has_heard_it_does_not_ask_again(tmp_path: Path) -> None:
    """The context opens no session, so that nothing can be started."""
    well = finished(tmp_path)
    place = well.launch.partition, well.launch.environment, "node"
    work = SimpleNamespace(root=tmp_path)
    context = cast("SessionContext", SimpleNamespace(work=work, heard={place: [path_of("sm")]}))
    proof = prove_measured(context, Selection(Path("site.py")), [well])
    assert proof.paths == {place: [path_of("sm")]}
    other = cast("SessionContext", SimpleNamespace(work=work, heard={}))
    with pytest.raises(AttributeError, match="open_session"):
        prove_measured(other, Selection(Path("site.py")), [well])
