"""What the user asks of a session, from the words of the command line."""

from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.request import build_request
from postprocess.main import build_parser
from postprocess.model.routines.mpicost import FAMILIES
from postprocess.model.session import Request
from tests.support.faults import Declared, plants


def asked(work: WorkDirectory, words: str) -> Request:
    return build_request(work, build_parser().parse_args(words.split()))


def test_a_choice_is_told_in_the_words_of_the_checks(work: WorkDirectory):
    words = "run --routine bcast --bytes 8 --processes 2 --trials 5 --cache warm --sync window --time-limit 60"
    request = asked(work, f"{words} --strict")
    expected = {"routines": ["bcast"], "sizes": [8], "processes": [2], "trials": 5, "strict": True}
    expected |= {"cache": "warm", "sync": "window", "time_limit": "60s"}
    expected |= {"as_references": True}  # of rounds, which are not named here
    assert request.strict and request.selection.choice == expected


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("nightly", "nightly"),
        ("nightly --program mpicost --routine bcast --strict", "nightly"),
        ("nightly --references mine", "run"),
        ("nightly --set-env a:X=1", "run"),
        ("nightly --oversubscribe", "run"),
        ("run", "run"),
        ("calibrate --oversubscribe", "calibrate"),
    ],
)
def test_a_night_that_differs_from_others_by_an_option_is_stored_as_a_run(
    work: WorkDirectory, tmp_path: Path, monkeypatch, words: str, mode: str
):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert asked(work, words).mode == mode


def test_reframe_finds_references_that_were_named_from_here(work, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert asked(work, "run --references mine").references == tmp_path / "mine"


def test_the_variables_of_the_shell_that_steer_an_mpi_are_taken(work: WorkDirectory, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    assert asked(work, "nightly").selection.shell == {"OMPI_MCA_btl": "^ofi"}


def test_variables_are_gathered_by_environment(work: WorkDirectory):
    expected = {"a": {"X": "1", "Y": "3"}, "b": {"X": "2"}}
    found = asked(work, "run --set-env a:X=1 --set-env b:X=2 --set-env a:Y=3")
    assert found.selection.set_env == expected


def test_variables_may_name_a_chosen_environment_in_full_or_by_its_family(work: WorkDirectory):
    for words in (
        "--environment mpich --set-env mpich-5_0_2:X=1",
        "--environment mpich-5_0_2 --set-env mpich:X=1",
    ):
        assert list(asked(work, f"run {words}").selection.set_env.values()) == [{"X": "1"}]
    with pytest.raises(UsageError, match="--set-env mpich: is not among those of --environment"):
        asked(work, "run --environment mpichx --set-env mpich:X=1")


@plants("use", "a routine that the chosen family has not", "`--family` beside `--routine`", "", 2,
        "--routine bcast: is not of --family imb-mt, which has pingpong_mt, ")  # fmt: skip
def test_routines_narrow_a_family(work: WorkDirectory, declared: Declared):
    for family, routine in (("imb-mt", "bcast_mt"), ("imb-io", "c_write_expl.aggregate"), ("rus", "bcast")):
        chosen = asked(work, f"run --family {family} --routine {routine}").selection.choice
        assert chosen["routines"] == [routine]
    assert len(asked(work, "run --family imb-mt").selection.choice["routines"]) == 10
    for family, (first, *_) in FAMILIES.items():
        chosen = asked(work, f"run --family {family} --routine {first}").selection.choice
        assert chosen["routines"] == [first], family
    with declared.raises(UsageError):
        asked(work, "run --family imb-mt --routine bcast_mt,bcast")


@plants("use", "an option that no chosen program has",
        "`--trials`, `--iterations` or `--cache`", "", 2, "only")  # fmt: skip
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--program osu --trials 5", "--trials 5: is for mpicost, kernels and gpu only, and --program osu "),
        ("--program mpicost --iterations 7", "--iterations 7: is for osu"),
        ("--program osu,imb --cache flush", "--cache flush: is for mpicost only, "),
        ("--program mpicost,osu --cache rotate", "--cache rotate: is for imb only, "),
    ],
)
def test_an_option_that_no_chosen_program_has_is_refused(work, words: str, said: str, declared: Declared):
    with declared.raises(UsageError) as refused:
        asked(work, f"list {words}")
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "words",
    [
        "--trials 5 --iterations 7 --cache flush",
        "--program mpicost,imb --trials 5 --iterations 7 --cache rotate",
        "--program osu --cache warm --iterations 7",
    ],
)
def test_an_option_that_one_of_them_has_is_not(work: WorkDirectory, words: str):
    assert asked(work, f"list {words}").selection.choice["iterations"] == 7
