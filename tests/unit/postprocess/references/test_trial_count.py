"""A night measures with as many trials as its references were measured with."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.runtime import temp_runtime

from postprocess.base.workdir import WorkDirectory
from postprocess.cli import request
from postprocess.main import build_parser
from postprocess.model.options import AS_REFERENCES
from postprocess.model.reference import Reference
from postprocess.model.session import Selection, use_reference_trials
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import describe_unusual_trials, read_reference_trials
from tests.support.factories.launch import CASES, PLACE, origin_of, planned
from tests.support.paths import ROOT
from tests.support.request import ask


def write(root: Path, environment: str = PLACE[2], **method) -> Path:
    """A reference file that was measured by this method."""
    path = reference_file.locate_references(root, *PLACE[:2], environment)
    known = [Reference(case, 1e-6, 0.02, 20) for case in CASES]
    reference_file.write_references(path, known, origin_of(method={"suite_version": "0.1.0", **method}))
    return path


def test_what_the_first_root_with_a_file_tells(tmp_path: Path):
    roots = [tmp_path / "first", tmp_path / "second"]
    assert read_reference_trials(roots, *PLACE) is None
    write(roots[1], trials=21)
    assert read_reference_trials(roots, *PLACE) == (21, 1)
    write(roots[0], trials=101, rounds=5)
    assert read_reference_trials(roots, *PLACE) == (101, 5)


@pytest.mark.parametrize(
    "method",
    [*({"trials": trials} for trials in (None, "21", 2.5, 1, True)), {"trials": 2, "rounds": 0}],
    ids=str,
)
def test_what_is_no_number_of_trials_tells_nothing(tmp_path: Path, method):
    write(tmp_path, **method)
    assert read_reference_trials([tmp_path], *PLACE) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"programs": 3}', '{"programs": {"mpicost": 1}}', "[" * 100_000]
)
def test_a_damaged_file_tells_nothing_here(tmp_path: Path, text: str):
    provenance.locate_provenance(write(tmp_path, trials=21)).write_text(text)
    assert read_reference_trials([tmp_path], *PLACE) is None


def test_references_of_other_programs_tell_nothing(tmp_path: Path):
    path = write(tmp_path, trials=21)
    origin = json.loads(provenance.locate_provenance(path).read_text())
    origin["programs"]["osu"] = origin["programs"].pop("mpicost")
    provenance.locate_provenance(path).write_text(json.dumps(origin))
    assert read_reference_trials([tmp_path], *PLACE) is None


def counts_in(root: Path, choice: dict, patch: pytest.MonkeyPatch, defaults: dict | None = None):
    """The trials and rounds that a check plans."""
    ask(patch, choice=choice, only_looking=True)
    check = SimpleNamespace(
        family="",
        trials=51,
        trial_rounds=5,
        time_limit=None,
        site_variables=("trials", "trial_rounds"),
        reference_roots=[str(root)],
        value_from_setvar=lambda name: None,
        current_system=SimpleNamespace(name=PLACE[0]),
        current_partition=SimpleNamespace(name=PLACE[1]),
        facts=SimpleNamespace(defaults=defaults or {}),
        current_environ=SimpleNamespace(name=PLACE[2]),
    )
    with temp_runtime(str(ROOT / "site_configs" / "slurm_cluster.py"), "slurm_cluster"):
        from reframe_checks.common.mpicost import MpicostCheck

        check.value_of_references = partial(MpicostCheck.value_of_references, check)
        MpicostCheck.resolve_settings(check)
    return check.trials, check.trial_rounds


def test_a_night_takes_the_trials_of_its_references_and_a_calibration_does_not(tmp_path, monkeypatch):
    assert counts_in(tmp_path, {AS_REFERENCES: True}, monkeypatch) == (51, 5)
    write(tmp_path, trials=21, rounds=2)
    assert counts_in(tmp_path, {AS_REFERENCES: True}, monkeypatch) == (21, 2)
    assert counts_in(tmp_path, {}, monkeypatch) == (51, 5)


def test_user_and_site_have_precedence(tmp_path, monkeypatch):
    write(tmp_path, trials=21, rounds=2)
    both = {AS_REFERENCES: True, "trials": 51}
    assert counts_in(tmp_path, both, monkeypatch) == (51, 2)
    assert counts_in(tmp_path, {AS_REFERENCES: True}, monkeypatch, {"trials": 51}) == (51, 2)
    both = {AS_REFERENCES: True, "trial_rounds": 1}
    assert counts_in(tmp_path, both, monkeypatch) == (21, 1)


def test_a_number_that_the_user_gave_stays():
    given = Selection(Path(), choice={"trials": 21})
    assert use_reference_trials(given).choice == {AS_REFERENCES: True, "trials": 21}


@pytest.mark.parametrize(
    ("words", "as_measured"),
    [
        *(("nightly", True), ("run --routine bcast", True), ("list", True), ("selftest", True)),
        ("nightly --trials 51", True),  # of which the user's own go first
        *(("calibrate", False), ("agree", False), ("links", False)),
    ],
)
def test_sessions_that_are_held_against_references(tmp_path: Path, words: str, as_measured: bool):
    arguments = build_parser().parse_args(words.split())
    asked = request.build_request(WorkDirectory(tmp_path, ROOT), arguments)
    assert (AS_REFERENCES in asked.selection.choice) is as_measured


def test_another_number_than_the_papers_is_told():
    launches = [planned(trials=51), planned(trials=21, environment="b"), planned(trials=21)]
    assert describe_unusual_trials(launches) == ["21 trials of mpicost, not 51: b, mpich-5_0_2"]
    assert describe_unusual_trials([planned(trials=51), planned(trials=21, cases=())]) == []
