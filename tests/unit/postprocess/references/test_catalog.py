"""The references of a session: loaded and checked before anything runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.model.conditions import METHOD, circumstances_of, conditions_of, method_of
from postprocess.model.interposed import SEPARATOR
from postprocess.model.reference import Reference
from postprocess.references import provenance
from postprocess.references.catalog import ReferenceSet, ShellDifference, load_catalog
from postprocess.references.comparability import (
    Difference,
    find_missing_fact,
    join_conditions,
    list_differences,
    reduce_to_differences,
)
from postprocess.references.reference_file import COLUMNS, ReferenceFileError
from site_configs.schema.fields import PLATFORM_HASH
from site_configs.schema.waivers import DIFFERENCES
from site_configs.topology.machine import LIMITS
from tests.support.factories.launch import CASES, PLACE, case, origin_of, write_references
from tests.support.factories.record import bound_run
from tests.support.faults import Declared, plants

WHERE = (":".join(PLACE[:2]), PLACE[2])
RUN = {"program": "mpicost", "suite_version": "0.1.0", "trials": 51, "dropped": 1, "settle": 0.5}
RUN |= {"cpu_model": "a processor", "mpi_library": "MPICH Version: 5.0.2", "source_hash": "0123"}
RUN |= {"compiler": "gcc 12.2.0", "compiler_flags": "-O3", "processes": 2, "per_node": 2}
RUN |= {"ranks": [{"rank": rank, "host": "n1", "cpus": str(rank)} for rank in range(2)]}
CIRCUMSTANCES = circumstances_of(RUN)


def test_a_book_has_the_references_of_the_places_that_have_a_file(tmp_path: Path):
    write_references(tmp_path)
    catalog = load_catalog([tmp_path], [WHERE, WHERE, ("local:cpu", "openmpi-5_0_11")])
    assert list(catalog.sets) == [WHERE]
    assert catalog.reference(CASES[0]).center == 1e-6
    for other in ({"environment": "openmpi-5_0_11"}, {"partition": "gpu"}, {"system": "other"}):
        assert catalog.reference(case(**other)) is None
    assert catalog.reference(case(size=16)) is None


def test_the_first_root_that_has_the_file_wins(tmp_path: Path):
    reviewed, provisional = tmp_path / "reviewed", tmp_path / "provisional"
    write_references(provisional, 2e-6)
    assert load_catalog([reviewed, provisional], [WHERE]).reference(CASES[0]).center == 2e-6
    path = write_references(reviewed, 1e-6)
    catalog = load_catalog([reviewed, provisional], [WHERE])
    assert catalog.reference(CASES[0]).center == 1e-6
    assert catalog.find_set(CASES[0]).path == path


def tell(path: Path, text: str) -> None:
    """Write another provenance beside a reference file."""
    provenance.locate_provenance(path).write_text(text)


@plants("references", "a table or a provenance that is damaged, in 10 ways",
        "references of a session", "", 2, "mpich-5_0_2")  # fmt: skip
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text(path.read_text().replace("\ts\t", "\tus\t", 1)),
        lambda path: path.write_text(path.read_text() + path.read_text().split("\n")[-2] + "\n"),
        lambda path: path.write_text("colour\n"),
        lambda path: path.write_text(""),
        lambda path: provenance.locate_provenance(path).unlink(),
        lambda path: tell(path, "{"),
        lambda path: tell(path, json.dumps(origin_of(method="mine"))),
        lambda path: tell(path, json.dumps(origin_of(method=None))),
        lambda path: tell(path, json.dumps(origin_of(method={}))),
        lambda path: tell(path, json.dumps(origin_of("osu"))),
    ],
)
def test_a_file_with_a_fault_stops_the_session_in_one_line(tmp_path, damage, declared):
    path = write_references(tmp_path)
    damage(path)
    with declared.raises(ReferenceFileError) as refused:
        load_catalog([tmp_path], [WHERE])
    assert str(path.with_suffix("")) in str(refused.value)
    assert "\n" not in str(refused.value)


@plants("references", "only the center in the table, half as large again", "a reference file",
        "not-comparable", 1, "center is not that of its launches: ")  # fmt: skip
def test_a_center_that_is_not_that_of_its_launches_compares_with_nothing(tmp_path, declared):
    """Made half as large again in the table alone, it let a slowdown by a half pass."""
    path = write_references(tmp_path)
    rows = path.read_text().splitlines()
    cells = rows[1].split("\t")
    cells[COLUMNS.index("center")] = "1.5e-06"
    path.write_text("\n".join([rows[0], "\t".join(cells), *rows[2:]]) + "\n")
    found = load_catalog([tmp_path], [WHERE]).sets[WHERE]
    edited, *others = sorted(CASES)
    conditions = conditions_of(RUN, exact=False)
    said = found.difference(conditions, edited, {}, {})
    assert said.startswith(f"{path.name}: center is not that of its launches: 1.5e-06, and ")
    declared.check_case("not-comparable", said)
    assert all("its launches" not in found.difference(conditions, each, {}, {}) for each in others)


@plants("references", "no headlines of the launches behind a row", "a provenance", "not-comparable", 1,
        "has no headlines in the provenance; calibrate it again")  # fmt: skip
def test_a_row_whose_launches_nobody_tells_compares_with_nothing(tmp_path, declared):
    path = write_references(tmp_path)
    tell(path, json.dumps(origin_of()))
    found = load_catalog([tmp_path], [WHERE]).sets[WHERE]
    said = found.difference(conditions_of(RUN, exact=False), CASES[0], {}, {})
    declared.check_case("not-comparable", said)


def reference_set(**told: Any) -> ReferenceSet:
    """References of this launch, of which something else is told."""
    method = method_of(RUN, exact=False)
    return ReferenceSet(
        Path("mpich.tsv"), {}, origin_of(**{"method": method, "circumstances": CIRCUMSTANCES} | told)
    )


def differing(
    known: ReferenceSet, run: dict[str, Any], exact: bool = False, accepts: Any = (), by_hand: Any = ()
) -> str:
    """What is said of a launch of a case of its program."""
    return known.difference(
        conditions_of(run, exact), case(program=run["program"]), dict(accepts), dict(by_hand)
    )


@pytest.mark.parametrize(
    ("change", "by_hand", "outdated"),
    [
        ({"compiler": "gcc 99"}, {}, "is of another compiler"),
        ({"compiler": "gcc 99", "cpu_model": "another"}, {}, "is of another processor, compiler"),
        ({"program": "osu"}, {}, "does not record how it was measured"),
        # what the command, the shell or a file can set as it was
        ({"trials": 11}, {}, ""),
        ({"compiler": "gcc 99", "trials": 11}, {}, ""),
        ({"interposed": [{"path": "/tmp/libprofiler.so", "text": "0123456789"}]}, {}, ""),
        ({}, {"shell": {"UCX_TLS": "tcp"}}, ""),
    ],
    ids=str,
)
def test_a_reference_is_outdated_only_by_what_no_launch_can_set_back(change, by_hand, outdated):
    run = RUN | change
    of = case(program=run["program"])
    found = reference_set().find_incomparability(conditions_of(run, exact=False), of, {}, by_hand)
    assert found and found.outdated == outdated


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("suite_version", "0.2.0"), ("trials", 11), ("dropped", 0), ("settle", 0.0)), ("cpu_model", "another")],
)
def test_another_method_is_named_with_both_values(key: str, value: Any):
    found = differing(reference_set(), RUN | {key: value})
    fix = "calibrate again" + (" or accept it in the site file" if key in DIFFERENCES else "")
    assert found == f"{key} is {value!r}, and {RUN[key]!r} in mpich.tsv; {fix}"
    without = {name: fact for name, fact in RUN.items() if name != key}
    assert differing(reference_set(), without).startswith(f"{key} is None")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"program": "osu"}, "mpich.tsv does not record how osu was measured; calibrate again"),
        ({"per_node": 1}, "does not record the binding of 2x1"),
    ],
)
def test_references_that_tell_nothing_of_a_program_or_layout_do_not_compare_with_it(change, said):
    """However like another program it was measured."""
    assert said in differing(reference_set(), RUN | change)


def test_what_options_set_for_the_references_must_be_set_for_a_launch_too():
    """Else a night is held against an experiment. An option set to see what it changes is another thing."""
    options = {"set_env": {"UCX_TLS": "tcp"}}
    known = reference_set(options=options)
    assert differing(known, RUN).startswith(f"options is {{}}, and {options} in mpich.tsv; ")
    assert differing(known, RUN, by_hand=options) == ""
    assert differing(known, RUN, by_hand={"oversubscribe": True}).startswith("options is ")
    more = {"oversubscribe": True, "set_env": {"OTHER": "1", **options["set_env"]}}
    assert differing(known, RUN, by_hand=more) == ""
    assert differing(known, RUN, by_hand={"set_env": {"UCX_TLS": "rc"}}) != ""
    assert differing(reference_set(), RUN, by_hand=options) == ""


def test_of_two_long_texts_the_lines_that_differ_are_told():
    one, other = (SEPARATOR.join(("same", line)) for line in ("a", "b"))
    assert reduce_to_differences(one, other) == ("a", "b")
    assert reduce_to_differences("a", "b") == ("a", "b") and reduce_to_differences(1, one) == (1, one)


def test_what_to_do_about_a_difference_does_not_hang_on_its_name():
    assert Difference("shell variable of another wording", 1, 2).fix == "calibrate again"
    assert ShellDifference("another name", "rc", None).fix.startswith("unset it")
    assert ShellDifference("another name", "rc", "tcp").fix.startswith("set it to 'tcp'")


def test_what_the_shell_sets_for_an_mpi_must_be_the_same_on_both_sides():
    """Else what was forgotten in a shell would be measured as the machine."""
    tcp = {"shell": {"UCX_TLS": "tcp", "FI_PROVIDER": "cxi"}}
    plain, known = reference_set(), reference_set(options=tcp)
    assert differing(known, RUN, by_hand=tcp) == ""
    assert differing(known, RUN, by_hand=tcp | {"set_env": {"A": "1"}}) == ""
    assert differing(plain, RUN, by_hand=tcp) == (
        "shell variable FI_PROVIDER is 'cxi', and unset in mpich.tsv; shell variable UCX_TLS differs too; "
        "unset it, or calibrate --output DIR with it"
    )
    rc = {"shell": {"UCX_TLS": "rc", "FI_PROVIDER": "cxi"}}
    assert differing(known, RUN, by_hand=rc) == (
        "shell variable UCX_TLS is 'rc', and 'tcp' in mpich.tsv; set it to 'tcp', or calibrate "
        "--output DIR as it is now"
    )
    assert differing(known, RUN).startswith("shell variable FI_PROVIDER is unset, and 'cxi' in ")
    both = differing(reference_set(options=tcp | {"oversubscribe": True}), RUN)
    assert "shell variable" in both
    option = reference_set(options={"oversubscribe": True})
    assert differing(option, RUN).startswith("options is ")


def test_what_was_forgotten_in_a_shell_is_told_first_and_with_what_it_does():
    """A calibration, as another difference asks for, would be of it."""
    alone = {"shell": {"MPIR_CVAR_NOLOCAL": "1"}}
    assert differing(reference_set(), {**RUN, "trials": RUN["trials"] + 1}, by_hand=alone) == (
        "shell variable MPIR_CVAR_NOLOCAL is '1' (ranks of a node do not use its shared memory), and unset in "
        "mpich.tsv; trials differs too; unset it, or calibrate --output DIR with it"
    )
    both = {"shell": {"FI_PROVIDER": "cxi", **alone["shell"]}}
    assert differing(reference_set(), RUN, by_hand=both).startswith("shell variable MPIR_CVAR_NOLOCAL is '1' (")
    assert "(" not in differing(reference_set(options=alone), RUN)
    assert "(" not in differing(reference_set(), RUN, by_hand={"shell": {"MPIR_CVAR_NOLOCAL": "0"}})


@pytest.mark.parametrize("key", METHOD)
def test_every_part_of_the_method_must_be_told(key: str):
    partly = {name: value for name, value in method_of(RUN, exact=False).items() if name != key}
    assert f"does not record the {key}" in differing(reference_set(method=partly), RUN)


def simulated(method: dict[str, Any]) -> ReferenceSet:
    return replace(reference_set(method=method), references={1: Reference(1, 1.0, 0.0, 2, exact=True)})


def test_simulated_time_is_of_one_simulator_and_one_platform_and_the_same_on_every_processor():
    """All else still counts."""
    environment = {PLATFORM_HASH: "0123456789abcdef"}
    run = RUN | {"mpi_library": "SMPI 3.32", "environment": environment}
    known = simulated(method_of(run, exact=True))
    assert (
        differing(known, run, exact=True) == differing(known, run | {"cpu_model": "another"}, exact=True) == ""
    )
    assert "trials" in differing(known, run | {"trials": 11}, exact=True)
    assert "mpi_library is" in differing(known, run | {"mpi_library": "SMPI 3.33"}, exact=True)
    other = run | {"environment": {PLATFORM_HASH: "another"}}
    assert differing(known, other, exact=True).startswith("platform is 'another', and '0123")


@plants("references", "simulated times for measured ones, or the reverse", "references of a session",
        "not-comparable", 1, "time is ")  # fmt: skip
@pytest.mark.parametrize("exact", [False, True])
def test_simulated_and_measured_time_compare_with_each_other_never(exact: bool, declared: Declared):
    method = method_of(RUN, exact) | method_of(RUN, not exact)
    known = reference_set(method=method) if exact else simulated(method)
    assert differing(known, RUN, exact=not exact) == ""
    declared.check_case("not-comparable", differing(known, RUN, exact))


OSU = {
    "program": "osu",
    "version": "7.4",
    "cpu_model": "a processor",
    "method": {"iterations": 200, "warmups": 20},
}
ACCEPT = "calibrate again or accept it in the site file"


def osu_origin() -> dict[str, Any]:
    return origin_of("osu", method=method_of(OSU, exact=False), circumstances=circumstances_of(OSU))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "7.5"}, f"version is '7.5', and '7.4' in mpich.tsv; {ACCEPT}"),
        ({"cpu_model": "x"}, f"cpu_model is 'x', and 'a processor' in mpich.tsv; {ACCEPT}"),
        ({"method": OSU["method"] | {"iterations": 50}}, "iterations is 50, and 200 in mpich.tsv;"),
        ({"method": OSU["method"] | {"window": 64}}, "mpich.tsv does not record the window it was "),
    ],
)
def test_a_reference_benchmark_measured_otherwise_is_not_comparable(change, said):
    known = ReferenceSet(Path("mpich.tsv"), {}, osu_origin())
    assert differing(known, OSU | change).startswith(said)


def test_each_program_is_compared_with_its_own_method():
    both = origin_of(method=method_of(RUN, exact=False), circumstances=CIRCUMSTANCES)
    both["programs"] |= osu_origin()["programs"]
    known = ReferenceSet(Path("mpich.tsv"), {}, both)
    assert differing(known, RUN) == differing(known, OSU) == ""
    assert "trials is 11" in differing(known, RUN | {"trials": 11})


CHANGES = [
    ("compiler", "gcc 13.1.0", "compiler"),
    ("compiler_flags", "-O2 -g", "flags"),
    ("source_hash", "4567", "source_hash"),
    ("mpi_library", "MPICH Version: 5.0.2\nMPICH Device: ch4:ucx", "mpi_library"),
    ("ranks", [{"rank": rank, "host": "n1", "cpus": "0-1"} for rank in range(2)], "binding"),
    ("caches", [{"level": 3, "type": "Unified", "bytes": 1 << 25, "shared_by": 2}], "caches"),
    ("cpu_model", "another", "cpu_model"),
]


@plants("references", "another compiler, flags, source, MPI, binding, caches or processor",
        "what a launch ran on", "not-comparable", 1,
        " is …, and … in mpich.tsv; calibrate again or accept it in the site file")  # fmt: skip
@pytest.mark.parametrize(("key", "value", "name"), CHANGES)
def test_a_program_or_node_or_binding_that_differs_is_named_unless_the_site_accepts_it(
    key, value, name, declared: Declared
):
    known, run = reference_set(), RUN | {key: value}
    found = differing(known, run)
    assert found.startswith(f"{name} is ")
    declared.check_case("not-comparable", found)
    assert differing(known, run, accepts={"colour": "of no account"}) == found
    accepts = {name: "looked at in May"}
    assert differing(known, run, accepts=accepts) == ""
    (told,) = known.accepted(conditions_of(run, False), CASES[0], accepts)
    assert told.name == name
    assert known.accepted(conditions_of(RUN, False), CASES[0], accepts) == []
    assert "trials is 11" in differing(known, run | {"trials": 11}, accepts=accepts)


NAMELESS = [
    {"cpu_model": "unknown aarch64", "caches": []},
    {"cpu_model": "unknown"},
    {"cpu_model": "a processor + unknown ppc64le", "caches": []},
    {"cpu_model": "", "caches": []},
    {"cpu_model": None, "caches": None},
]


@pytest.mark.parametrize("facts", NAMELESS, ids=str)
@pytest.mark.parametrize("program", ["mpicost", "osu"])
def test_processors_that_nothing_names_are_not_taken_for_the_same(program: str, facts):
    run = (RUN if program == "mpicost" else OSU) | facts
    told = {"method": method_of(run, exact=False), "circumstances": circumstances_of(run)}
    known = ReferenceSet(Path("mpich.tsv"), {}, origin_of(program, **told))
    assert differing(known, run) == (
        f"cpu_model is {facts['cpu_model']!r} without caches, which may be any machine, "
        "and the same in mpich.tsv; accept it in the site file"
    )
    accepts = {"cpu_model": "all nodes are of one kind"}
    assert differing(known, run, accepts=accepts) == ""
    assert differing(known, run, accepts={"caches": "all nodes are of one kind"}) != ""
    (found,) = known.accepted(conditions_of(run, False), case(program=program), accepts)
    assert (found.name, "any machine" in str(found)) == ("cpu_model", True)


def test_what_nothing_names_and_something_else_that_differs_are_both_told():
    run = RUN | NAMELESS[0]
    known = reference_set(method=method_of(run, exact=False), circumstances=circumstances_of(run))
    found = differing(known, run | {"compiler": "gcc 13"})
    assert found == (
        "compiler is 'gcc 13', and 'gcc 12.2.0' in mpich.tsv; cpu_model differs too; "
        "calibrate again or accept it in the site file"
    )
    other = differing(known, run | {"cpu_model": "unknown ppc64le"})
    assert other.startswith("cpu_model is 'unknown ppc64le', and 'unknown aarch64' in mpich.tsv;")
    assert "too" not in other


@pytest.mark.parametrize("facts", NAMELESS, ids=str)
def test_caches_tell_processors_without_a_name_apart(facts):
    """And simulated time has no processor."""
    run = RUN | facts | {"caches": [{"level": 1, "type": "Data", "bytes": 65536, "shared_by": 1}]}
    known = reference_set(method=method_of(run, exact=False), circumstances=circumstances_of(run))
    assert differing(known, run) == ""
    assert differing(simulated(method_of(RUN, exact=True)), RUN | facts, exact=True) == ""


@pytest.mark.parametrize("fact", sorted(CIRCUMSTANCES))
def test_a_condition_that_is_not_told_compares_with_nothing(fact: str):
    partly = {name: value for name, value in CIRCUMSTANCES.items() if name != fact}
    known = reference_set(circumstances=partly)
    assert f"does not record the {fact}" in differing(known, RUN)
    everything = dict.fromkeys(DIFFERENCES, "whatever it may be")
    assert differing(known, RUN, accepts=everything)


# Conditions of several launches that one calibration may have, and which it may not.


SHELL_LIMITS = {"stack": "unlimited"}


def test_a_calibration_has_the_bindings_of_all_its_layouts():
    two, four = (circumstances_of(bound_run(*cpus)) for cpus in (["0", "1"], ["0-3"] * 4))
    found = join_conditions(two, four)
    expected = {"2x2": "2 ranks of 1 CPU", "4x4": "4 ranks of 4 CPUs shared by 4"}
    assert found["binding"] == expected
    assert join_conditions({}, found) == join_conditions(found, {}) == found
    limited = circumstances_of(bound_run("0", "1", **{LIMITS: SHELL_LIMITS}))
    assert join_conditions(two, limited) == join_conditions(limited, two) == limited  # older launches have none


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (bound_run("0-1", "0-1"), "binding"),
        (bound_run("0", "1", compiler="gcc 13"), "compiler"),
        (bound_run("0", "1", mpi_library="MPICH Version: 5.0.3"), "mpi_library"),
        (bound_run("0", "1", **{LIMITS: {**SHELL_LIMITS, "stack": "8192"}}), LIMITS),
    ],
)
def test_launches_under_other_conditions_make_no_calibration(other, name):
    with pytest.raises(ValueError, match=name):
        join_conditions(
            circumstances_of(bound_run("0", "1", **{LIMITS: SHELL_LIMITS})), circumstances_of(other)
        )


ABI = {"standard_abi": {"version": "1.0", "program": "0" * 16, "library": "/opt/lib/libmpi_abi.so.1"}}


def test_a_program_of_the_standard_abi_is_not_held_against_one_of_the_mpis_own_interface():
    """The sources, the compiler, its flags and what the MPI says of itself may all be the same."""
    own, standard = (circumstances_of(bound_run("0", "1", **more)) for more in ({}, ABI))
    (there,), (back,) = list_differences(standard, own), list_differences(own, standard)
    expected = "the program's binary interface is the standard ABI 1.0 of MPI, and the MPI's own"
    assert (str(there), there.name, there.fix) == (expected, "standard_abi", "calibrate again")
    assert str(back) == "the program's binary interface is the MPI's own, and the standard ABI 1.0 of MPI"
    assert find_missing_fact(standard, own) == ""
    for one, other in ((own, standard), (standard, own)):
        with pytest.raises(ValueError, match="standard_abi"):
            join_conditions(one, other)


def test_the_file_and_the_place_of_a_program_of_the_standard_abi_are_no_condition():
    moved = {"standard_abi": {"version": "1.0", "program": "1" * 16, "library": "/else/libmpi_abi.so.1"}}
    one, other = (circumstances_of(bound_run("0", "1", **more)) for more in (ABI, moved))
    assert one["standard_abi"] == "1.0"
    assert list_differences(one, other) == []
