"""What transports of a night mean beside those of its calibration, and in a node."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from postprocess.base.records import recall
from postprocess.model.case import Case
from postprocess.model.launch import TCP_PACKETS, FinishedLaunch, fail_launch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TransportPath
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.nightly import transports
from postprocess.session.nightly.transports import (
    KnownTransports,
    ReferenceOrigin,
    TransportProof,
    choose_checks,
    find_origins,
    hear,
    listen,
    prove_measured,
)
from site_configs.schedulers.base import Ending
from site_configs.schema.transports import ExpectedTransport
from tests.support.factories.launch import finished, leave
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
    assert proof.find_faults() == {"mpi": f"on s:p {result.reason}"}
    on_libfabric = replace(proof, without_memory={"mpi"})
    assert judge(on_libfabric) == PASSED
    between = replace(on_libfabric, fabrics={NODE: ["mlx5_0"]})
    assert "where mlx5_0 is up" in judge(between).reason
    asked = replace(proof, expected={NODE: ExpectedTransport.parse("openmpi:tcp")})
    assert judge(asked) == PASSED
    assert asked.find_faults() == {}


MLX5 = {
    "network mlx5_0": "mlx5_core, firmware 20.31, port 1 4: ACTIVE, link InfiniBand, rate 200 Gb/sec (4X HDR)"
}
DOWN = {"network mlx5_0": "mlx5_core, firmware 20.31, port 1 1: DOWN, link InfiniBand"}
ROCE = {"network mlx5_0": "mlx5_core, firmware 20.31, port 1 4: ACTIVE, link Ethernet, rate 25 Gb/sec (1X EDR)"}
BETWEEN = "[1.5] [n1:7:0]  ucp_worker.c:1903 UCX  INFO  ucp_context_0 inter-node cfg#1 tag(tcp/eth0)\n"


def launch_between(tmp_path: Path, *facts: dict[str, str]) -> FinishedLaunch:
    """A launch on nodes with these facts, which says that UCX takes TCP."""
    run = finished(tmp_path)
    assert run.outcome.records
    wide = tuple(replace(case, processes=2, per_node=1) for case in run.launch.cases)
    hosts = [{"name": f"n{number}", "ranks": 1} for number in range(len(facts))]
    record = {**run.outcome.records.run, "hosts": hosts, "node_facts": list(facts)}
    records = replace(run.outcome.records, run=record)
    run = replace(run, launch=replace(run.launch, cases=wide), outcome=replace(run.outcome, records=records))
    (tmp_path / "rfm_job.out").write_text(BETWEEN)
    return replace(run, directory=str(tmp_path))


def hear_between(
    tmp_path: Path, *facts: dict[str, str], beside: Sequence[FinishedLaunch] = ()
) -> TransportProof:
    """What is proven by a start on two nodes with these facts, and by what was measured beside it."""
    run = launch_between(tmp_path, *facts)
    context, place = Silent(tmp_path), (run.launch.partition, run.launch.environment, "network")
    hear(cast("SessionContext", context), [run], tmp_path, [place])
    return prove(context, run, *beside)


@plants("environment", "TCP between nodes whose InfiniBand is up", "UCX",
        "not-comparable", 1, "between nodes its MPI uses ucx:tcp, where network mlx5_0 is up; …")  # fmt: skip
def test_tcp_beside_a_fast_network_is_not_comparable(tmp_path: Path, declared: Declared) -> None:
    proof = hear_between(tmp_path, MLX5, MLX5)
    ((place, paths),) = proof.paths.items()
    assert [path.is_tcp for path in paths] == [True]
    case = replace(CASE, environment=place[1], processes=2, per_node=1)
    system, _, partition = place[0].partition(":")
    passed = CaseResult(replace(case, system=system, partition=partition), Verdict.PASS)
    (result,) = proof.apply([passed])
    declared.check_case(result.verdict, result.reason)
    asked = replace(proof, expected={place: ExpectedTransport.parse("ucx:tcp")})
    assert asked.apply([passed]) == [passed]


def test_a_container_that_hides_the_network_does_not_hide_it_where_another_launch_sees_it(tmp_path) -> None:
    bare = launch_between(tmp_path, MLX5, MLX5)
    assert hear_between(tmp_path, {}, {}).find_faults() == {}
    (fault,) = hear_between(tmp_path, {}, {}, beside=[bare]).find_faults().values()
    assert "where network mlx5_0 is up" in fault
    half = launch_between(tmp_path, MLX5)
    assert hear_between(tmp_path, {}, {}, beside=[half]).find_faults() == {}


def test_a_start_on_nodes_without_the_network_does_not_hide_that_of_another_start(tmp_path: Path) -> None:
    context = Silent(tmp_path)
    for facts in ({}, MLX5):
        run = launch_between(tmp_path, facts, facts)
        place = run.launch.partition, run.launch.environment, "network"
        run.run["hosts"][0]["name"] += str(len(facts))
        run.run["hosts"][1]["name"] += str(len(facts))
        hear(cast("SessionContext", context), [run], tmp_path, [place])
    (fault,) = prove(context, run).find_faults().values()
    assert "where network mlx5_0 is up" in fault


def hear_packets(tmp_path: Path, before: int, after: int, output: str = "") -> TransportProof:
    """What is proven by a start in a node of which rank 0 sent so many packets over TCP, before and in all."""
    run = finished(tmp_path)
    assert run.outcome.records
    records = replace(run.outcome.records, run={**run.run, TCP_PACKETS: before}, end={TCP_PACKETS: after})
    run = replace(run, outcome=replace(run.outcome, records=records), directory=str(tmp_path))
    (tmp_path / "rfm_job.out").write_text(output)
    context, place = Silent(tmp_path), (run.launch.partition, run.launch.environment, "node")
    hear(cast("SessionContext", context), [run], tmp_path, [place])
    return TransportProof(context.heard)


@plants("environment", "shared memory off, TCP forced: `MPIR_CVAR_NOLOCAL=1`, `UCX_TLS=tcp` in the site file",
        "MPICH, which tells nothing of pairs in a node", "not-comparable", 1,
        "in a node its MPI uses kernel:tcp, where …: rank 0 sent 74 packets over TCP")  # fmt: skip
def test_tcp_of_which_no_library_tells_is_counted_by_the_kernel(tmp_path: Path, declared: Declared) -> None:
    proof = hear_packets(tmp_path, 12, 86)
    ((environment, _),) = proof.find_faults().items()
    case = replace(CASE, system="local", partition="cpu", environment=environment)
    (result,) = proof.apply([CaseResult(case, Verdict.PASS)])
    declared.check_case(result.verdict, result.reason)
    place = "local:cpu", environment, "node"
    asked = replace(proof, expected={place: ExpectedTransport.parse("kernel:tcp")})
    assert asked.find_faults() == {}
    meant = replace(proof, expected={place: ExpectedTransport.parse("ucx:posix|sysv")})
    assert "the site expects 'ucx:posix|sysv'" in meant.find_faults()[environment]


BY_MEMORY = "[vm:1] mca: bml: Using sm btl for send to [[7,1],1] on node vm\n"


@pytest.mark.parametrize(
    ("before", "after", "output"),
    [(0, 0, ""), (12, 24, ""), (900, 901, ""), (-1, -1, ""), (-1, 80, ""), (0, 80, BY_MEMORY)],
)
def test_packets_to_a_launcher_and_of_an_untold_number_are_no_messages(tmp_path, before, after, output) -> None:
    assert hear_packets(tmp_path, before, after, output).find_faults() == {}


@pytest.mark.parametrize("facts", [(MLX5, DOWN), (MLX5, {}), (ROCE, ROCE), (DOWN, DOWN)])
def test_a_network_that_is_not_up_everywhere_or_is_any_ethernet_is_no_better(tmp_path: Path, facts) -> None:
    assert hear_between(tmp_path, *facts).find_faults() == {}


def test_no_calibration_is_advised_where_the_transport_is_wrong() -> None:
    outdated = replace(PASSED, verdict=Verdict.NOT_COMPARABLE, outdated="is of another compiler")
    (result,) = TransportProof({NODE: [path_of("tcp")]}).apply([outdated])
    assert (result.verdict, result.outdated) == (Verdict.NOT_COMPARABLE, "")


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
def test_a_night_is_held_against_the_transports_of_its_calibration(tmp_path: Path, declared: Declared) -> None:
    file = tmp_path / "transports.json"
    calibrated = TransportProof({NODE: [path_of("sysv", "cma", layer="ucx")]})
    calibrated.remember(file, afresh=True)
    night = TransportProof({NODE: [path_of("posix", layer="ucx")]}, known=recall(file, KnownTransports))
    result = judge(night)
    declared.check_case(result.verdict, result.reason)
    night.remember(file, afresh=False)  # no night changes what is known
    assert judge(replace(night, known=recall(file, KnownTransports))) == result
    night.remember(file, afresh=True)
    assert judge(replace(night, known=recall(file, KnownTransports))) == PASSED


def make_origin(case: Case, *calibrations: tuple[str, str, dict[str, Any]]) -> ReferenceOrigin:
    """References of a case of each name, each with the transports and options of its calibration."""
    told = [
        {
            "date_utc": "2026-11-01 02:00:00 UTC",
            "transports": {"node": [transport]},
            "series": [{"launches": [], "headlines": {replace(case, routine=routine).key: []}}],
            **more,
        }
        for routine, transport, more in calibrations
    ]
    return ReferenceOrigin({"machine": "m", "programs": {case.program: {"calibrations": told}}}, True)


def test_reviewed_references_tell_it_where_a_work_directory_has_seen_nothing(tmp_path: Path) -> None:
    origin = make_origin(CASE, (CASE.routine, "ucx:sysv", {}))
    path = tmp_path / "reviewed" / "s" / "p" / "mpi.tsv"
    path.parent.mkdir(parents=True)
    path.touch()
    path.with_name("mpi.provenance.json").write_text(json.dumps(origin.provenance), encoding="utf-8")
    work = SimpleNamespace(root=tmp_path, provisional=tmp_path / "provisional")
    context = SimpleNamespace(work=work, reference_roots=[tmp_path / "reviewed", work.provisional])
    found = find_origins(cast(SessionContext, context), [NODE])
    assert found == {NODE[:2]: origin}
    night = TransportProof(
        {NODE: [path_of("posix", layer="ucx")]},
        known=KnownTransports(places={" ".join(NODE): ("ucx:posix",)}),
        references=found,
    )
    result = judge(night)
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert "./plumbline references propose" in result.reason


def test_each_case_is_held_against_the_transports_of_its_own_references() -> None:
    """Another case that was calibrated since by another transport lifts nothing."""
    both = make_origin(CASE, (CASE.routine, "ucx:sysv", {}), ("bcast", "ucx:posix", {}))
    night = TransportProof({NODE: [path_of("posix", layer="ucx")]}, references={NODE[:2]: both})
    assert judge(night).verdict is Verdict.NOT_COMPARABLE
    assert night.find_faults() == {}


def test_references_measured_with_options_by_hand_tell_nothing_of_launches_without() -> None:
    by_hand = make_origin(CASE, (CASE.routine, "ucx:sysv", {"options": {"set_env": {"UCX_TLS": "sysv"}}}))
    night = TransportProof({NODE: [path_of("posix", layer="ucx")]}, references={NODE[:2]: by_hand})
    assert judge(night) == PASSED


def test_what_no_library_tells_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "transports.json"
    unknown = TransportProof({NODE: []})
    unknown.remember(file, afresh=True)
    assert [*unknown.describe()] == ["transports: mpi in a node unknown"]
    assert [*replace(unknown, known=recall(file, KnownTransports)).describe()] == []  # it was told before
    TransportProof({NODE: [path_of("sm")]}).remember(file)
    assert recall(file, KnownTransports).places == {" ".join(NODE): ("openmpi:sm",)}
    TransportProof({NODE: [path_of("sm")]}).remember(file, afresh=True)
    assert judge(TransportProof({NODE: []}, known=recall(file, KnownTransports))) == PASSED


class Silent:
    """A session context that knows what it has heard, and can start nothing."""

    def __init__(self, root: Path, **heard: TransportPath) -> None:
        self.work, self.heard = SimpleNamespace(root=root), dict[Any, Any](heard)
        self.nodes: dict[Any, Any] = {}
        self.node_facts: dict[Any, Any] = {}
        self.proven: dict[Any, Any] = {}
        self.reference_roots: list[Path] = []
        self.prepared = SimpleNamespace(inventory=None)

    def hear(self, *paths: TransportPath, launch: PlannedLaunch) -> None:
        self.heard[launch.partition, launch.environment, "node"] = paths


def prove(context: Silent, *runs: FinishedLaunch) -> TransportProof:
    return prove_measured(cast("SessionContext", context), Selection(Path("site.py")), runs)


@pytest.mark.parametrize("job_end", [Ending.TAKEN_AWAY, Ending.NEVER_STARTED])
def test_nothing_is_started_where_a_job_lost_its_nodes(tmp_path: Path, job_end: Ending) -> None:
    """But what was heard before still holds."""
    well = finished(tmp_path)
    lost = finished(tmp_path, outcome=fail_launch(Verdict.CRASHED, "its node died", job_end))
    context = Silent(tmp_path)
    (line,) = prove(context, well, lost).describe()
    assert line.startswith(f"transports on {well.launch.partition}: not all are read")
    with pytest.raises(AttributeError, match="open_session"):
        prove(context, well)
    context.hear(path_of("tcp"), launch=well.launch)
    assert prove(context, well, lost).find_faults().keys() == {well.launch.environment}


def test_what_is_silent_beside_others_is_started_once_more_alone(tmp_path: Path, monkeypatch) -> None:
    """Some sites and devices let only one program run at a time."""
    well, context, beside = finished(tmp_path), Silent(tmp_path), []

    def start(_: Any, selection: Selection, *__: Any, beside_others: bool) -> Path:
        beside.append(beside_others)
        assert selection.built
        if not beside_others:
            context.hear(path_of("sm"), launch=well.launch)
        return tmp_path / f"start{len(beside)}"

    monkeypatch.setattr(transports, "listen", lambda *words, beside: start(*words, beside_others=beside))
    assert not prove(context, well).find_faults()
    assert beside == [True, False]


def test_a_job_of_more_nodes_that_never_started_keeps_no_smaller_one_back(tmp_path: Path) -> None:
    well = finished(tmp_path)
    wide = [replace(case, processes=64, per_node=2) for case in well.launch.cases]
    never = fail_launch(Verdict.CRASHED, "it never started", Ending.NEVER_STARTED)
    lost = replace(well, launch=replace(well.launch, cases=wide), outcome=never)
    with pytest.raises(AttributeError, match="open_session"):
        prove(Silent(tmp_path), well, lost)


def test_a_start_that_fails_proves_nothing_that_a_site_expects() -> None:
    expected = {NODE: ExpectedTransport.parse("ucx:posix")}
    proof = TransportProof({NODE: ()}, expected, silent={NODE})
    assert judge(proof).verdict is Verdict.NOT_COMPARABLE
    assert judge(replace(proof, expected={})) == PASSED
    assert [*proof.describe()] == ["transports: mpi in a node unknown (its start failed)"]
    assert judge(replace(proof, silent=())) == PASSED  # its library says nothing


def test_only_what_was_calibrated_is_remembered_afresh(tmp_path: Path) -> None:
    file = tmp_path / "transports.json"
    TransportProof({NODE: [path_of("sysv")]}).remember(file)
    moved = TransportProof({NODE: [path_of("posix")]})
    moved.remember(file, afresh=True, environments=())
    moved.remember(file)
    assert recall(file, KnownTransports).places == {" ".join(NODE): ("openmpi:sysv",)}
    moved.remember(file, afresh=True, environments={"mpi"})
    assert recall(file, KnownTransports).places == {" ".join(NODE): ("openmpi:posix",)}


@pytest.mark.parametrize(("code", "silent"), [("0\n", False), ("1\n", True), (None, True)])
def test_a_start_whose_table_is_unreadable_among_what_its_library_tells_has_not_failed(tmp_path, code, silent):
    refused = fail_launch(Verdict.INCOMPLETE, "line 7: not a line of the first lines")
    run = finished(tmp_path, outcome=refused)
    leave(tmp_path, run.launch, code=code)
    context = Silent(tmp_path)
    place = run.launch.partition, run.launch.environment, "node"
    hear(cast("SessionContext", context), [run], tmp_path, [place])
    assert (place not in context.heard) == silent


def test_what_a_command_has_heard_it_does_not_ask_again(tmp_path: Path) -> None:
    """The context opens no session, so that nothing can be started."""
    well = finished(tmp_path)
    place = well.launch.partition, well.launch.environment, "node"
    context = Silent(tmp_path)
    context.hear(path_of("sm"), launch=well.launch)
    assert prove(context, well).paths == {place: (path_of("sm"),)}


def test_what_takes_long_says_which_mpis_are_started(tmp_path: Path, monkeypatch, progress) -> None:
    """The builds of a first night are in it, in which a pipe saw the name of the phase alone."""
    (tmp_path / "session").mkdir()
    opened = SimpleNamespace(directory=tmp_path / "session"), None
    context = SimpleNamespace(
        progress=progress, quiet=SimpleNamespace(progress=None), open_session=lambda _: opened
    )
    shown: list[str] = []
    beside: list[bool] = []

    def run(_: Any, selection: Selection, *__: Any) -> tuple[None, SimpleNamespace]:
        shown.append(progress.step.line)
        beside.append(selection.side_by_side)
        return None, SimpleNamespace(build_seconds=0.0, finished=[])

    monkeypatch.setattr(transports, "run_again", run)
    monkeypatch.setattr(transports, "hear", lambda *_: None)
    listen(cast("SessionContext", context), Selection(tmp_path), {NODE: CASE}, shown=False, beside=True)
    assert beside == [True]
    assert [line.endswith(": one start of mpi, once it is built") for line in shown] == [True]


def test_only_the_check_that_has_the_cases_is_loaded(tmp_path: Path) -> None:
    own = replace(finished(tmp_path).launch, test="mpicost_0")
    other = replace(own, test="links_0")
    (case, *_) = own.cases
    path = choose_checks([own], [case])
    assert path is not None and f"class {case.program}(" in path.read_text()
    assert choose_checks([other], [case]) is None
    assert choose_checks([own, other], [case]) is None
