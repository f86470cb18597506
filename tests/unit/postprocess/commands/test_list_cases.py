"""What would run, what is left out, and how long it would take."""

import re
from dataclasses import replace
from pathlib import Path

from postprocess.commands import list_cases
from postprocess.model.plan import SkippedCase
from postprocess.model.session import Request, Selection
from postprocess.results.launch_costs import list_jobs
from postprocess.session.lifecycle.context import SessionContext
from postprocess.setup import PreparedMachine
from tests.support.factories.benchmark import osu_job
from tests.support.factories.launch import CASES, planned


def test_sizes_are_listed_by_routine():
    expected = {"bcast": [8, 1_000_000], "pingpong x 1": [8], "barrier": [0]}
    (job,) = list_jobs([planned()])
    assert list_cases.group_sizes_by_routine(job) == expected
    assert list_cases.format_sizes([0]) == "no payload"
    assert list_cases.format_sizes([8, 1_000_000]) == "8 B, 1 MB"
    assert list_cases.format_sizes([0, 8]) == "0 B, 8 B"
    assert list_cases.format_sizes([2**n for n in range(21)]) == "1 B to 1 MiB (21 sizes)"


def test_each_program_has_its_totals():
    plan = [planned(), *(osu_job(name) for name in ("bw", "latency", "bcast"))]
    lines = list(list_cases.describe_totals(plan, {}))
    assert lines[0].startswith("mpicost: 4 cases in 1 start, 1 job: about ")
    assert lines[1].startswith("osu: 60 cases in 3 starts, 1 job: about ")
    assert lines[2] == "64 cases in 4 starts, 2 jobs"
    known = {job.key: 5.0 for job in list_jobs(plan)}
    assert list(list_cases.describe_totals(plan, known))[1] == "osu: 60 cases in 3 starts, 1 job: about 5.0 s"


def test_what_is_left_out_is_said_with_the_way_to_get_it():
    whole = osu_job("bw")
    skips = tuple(SkippedCase(case, "another sentence", no_program=True) for case in whole.cases)
    skipped = replace(whole, cases=(), skips=skips)
    lines = list(list_cases.describe_left_out_launches([planned(), skipped]))
    assert lines == [
        "left out: 20 cases of osu: another sentence (./plumbline doctor shows what is missing)",
        "left out: imb: nothing of theirs was chosen (--program mpicost,osu,imb)",
    ]
    assert next(list_cases.describe_totals([planned(), skipped], {})).startswith("4 cases in 1 start, 1 job")
    assert list(list_cases.print_full_list([skipped])) == []
    big = replace(planned(), cases=(), skips=(SkippedCase(CASES[0], "needs 900 GB, and no Spack"),))
    said = list(list_cases.describe_left_out_launches([big]))
    assert "left out: 1 case of mpicost: needs 900 GB, and no Spack" in said


def test_a_job_of_many_starts_is_one_paragraph():
    lines = list(list_cases.print_full_list([osu_job("bw"), osu_job("latency")]))
    assert lines == [
        "osu on local:cpu, 2 processes, 2 per node",
        "  with mpich-5_0_2",
        "  1 B to 512 KiB (20 sizes): bw, latency",
    ]


def test_what_several_mpis_and_layouts_measure_alike_stands_once():
    wide = replace(planned(), cases=tuple(replace(case, processes=4, per_node=4) for case in planned().cases))
    both = [planned(), wide]
    lines = list(
        list_cases.print_full_list([*both, *(replace(launch, environment="openmpi") for launch in both)])
    )
    assert lines[:2] == [
        "mpicost on local:cpu, 2 processes, 2 per node; 4 processes, 4 per node",
        "  with mpich-5_0_2, openmpi",
    ]
    assert len(lines) == len({*lines})
    lines = list(list_cases.print_full_list([*both, replace(planned(), environment="openmpi")]))
    assert [line for line in lines if "with" in line] == ["  with mpich-5_0_2, openmpi", "  with mpich-5_0_2"]


def test_the_list_names_every_case(work, progress, monkeypatch, capsys):
    """``list`` itself, with a plan that was made without ReFrame."""
    looked: list[Selection] = []

    def look(reframe, selection):
        looked.append(selection)
        return [planned(), planned(number=2)]

    request = Request("list", [], "local", Selection(Path("site.py")), launches=2)
    monkeypatch.setattr(
        list_cases,
        "open_session_context",
        lambda *_: SessionContext(work, request, PreparedMachine(None, None), progress),
    )
    monkeypatch.setattr(SessionContext, "preview", look)
    assert list_cases.list_cases(work, request, progress) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "mpicost on local:cpu, 2 processes, 2 per node",
        "  with mpich-5_0_2",
        "  8 B, 1 MB: bcast",
    ]
    assert max(map(len, lines)) <= 80
    lines = "\n".join(lines).replace("\n  ", " ").splitlines()  # a sentence in one
    assert lines[-4].startswith("left out: osu, imb: ")
    assert lines[-3] == "4 cases in 2 starts, 2 jobs"
    assert re.fullmatch(
        r"tonight: about .* for 20 launches of a first calibration \(roughly: not all .*\)", lines[-2]
    )
    assert lines[-1].startswith("every later night: about ")
    assert [each.only_looking for each in looked] == [True]
