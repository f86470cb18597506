"""What takes long in simulated time is planned on request only."""

from pathlib import Path

from tests.support.plumbline_runner import Workshop


def test_what_takes_long_is_planned_where_it_is_asked_for_by_name(tmp_path: Path):
    workshop = Workshop(tmp_path / "home")
    choice = ("--site", "simulated", "--partition", "torus", "--processes", "128")
    night = workshop.run("list", *choice)
    asked = workshop.run("list", *choice, "--routine", "scan_sum,barrier")
    assert night.status == asked.status == 0
    assert "barrier" in night.said
    assert "scan" not in night.said
    assert "scan_sum" in asked.said


def test_a_case_that_would_end_all_of_its_launch_is_left_out_with_the_reason(tmp_path: Path):
    workshop = Workshop(tmp_path / "home")
    choice = ("--site", "simulated", "--partition", "fattree", "--processes", "8")
    sizes = ("--routine", "reduce_sum,bcast", "--bytes", "0,8")
    listed = workshop.run("list", *choice, "--environment", "simgrid-ompi", *sizes)
    assert listed.status == 0
    assert "left out: 1 case of mpicost: SimGrid 3.32's reduce of Open MPI" in listed.said


def test_no_launch_of_empty_messages_dies(workshop: Workshop):
    choice = ("--site", "simulated", "--partition", "fattree", "--processes", "2,5")
    ended = workshop.measure(*choice, "--family", "taboada", "--bytes", "0")
    verdicts = {case["verdict"] for case in ended.summary["cases"]}
    assert verdicts == {"no-reference", "skipped"}, ended.output
