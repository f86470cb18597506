"""No option writes over what Plumbline needs, or over what it did not write."""

from pathlib import Path

import pytest

from postprocess.main import main
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("sigterm_handler")
OURS = "is a place of Plumbline's own data; choose another file, or pass --force"
OTHERS = "is there, and no output of Plumbline; choose another file, or pass --force"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A work directory with an empty store."""
    (tmp_path / "home" / "store").mkdir(parents=True)
    return tmp_path / "home"


def write(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit status and what is said on standard error."""
    return main(str(ROOT), str(home), words), capsys.readouterr().err


@pytest.fixture
def check_refusal(home: Path, capsys, declared: Declared):
    """Hold against the fault that an option with this path is refused for this reason."""

    def check(*words: str, path: Path, why: str) -> None:
        status, said = write(home, capsys, *words, str(path))
        assert said == f"plumbline: {words[-1]} {path}: {why}\n"
        declared.check((), status, [said])

    return check


@plants("lost", "a file of the work directory, of a mirror, or of somebody else", "`--output` or `--json`",
        "", 2, "; choose another file, or pass --force")  # fmt: skip
@pytest.mark.parametrize("words", [["export", "--output"], ["alarms", "--json"]], ids=" ".join)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("home/store/20261101T000000Z-1.parquet", OURS),
        ("home/sessions/s/summary.json", OURS),
        ("home/references/local/cpu/a.tsv", OURS),
        ("home/alarms.jsonl", OTHERS),
        ("home/inventory.json", OTHERS),
        ("mirror/mirror.json", OTHERS),
        ("notes.txt", OTHERS),
        ("other.json", OTHERS),
        ("link", OTHERS),
    ],
)
def test_a_file_that_must_stay_is_refused_and_unchanged(home, check_refusal, words, name, why):
    path = home.parent / name
    target = home.parent / "notes.txt" if name == "link" else path
    target.parent.mkdir(parents=True, exist_ok=True)
    ours = name.endswith(("inventory.json", "mirror.json"))
    target.write_text('{"schema": 2, "files": [1]}' if ours else '{"mine": 1}')
    before = target.read_bytes()
    if name == "link":
        path.symlink_to(target)
    check_refusal(*words, path=path, why=why)
    assert target.read_bytes() == before


@plants("lost", "a reviewed reference file", "`--json`", "", 2, "plumbline: --json ")
def test_a_reviewed_reference_is_refused(check_refusal) -> None:
    path = next((ROOT / "reference_data").rglob("*.tsv"))
    before = path.read_bytes()
    check_refusal("alarms", "--json", path=path, why=OURS)
    assert path.read_bytes() == before


def test_what_plumbline_wrote_is_written_again_and_anything_by_force(home, capsys) -> None:
    words = ["export", "--output"]
    path = home.parent / "out"
    path.write_text("mine")
    status, _ = write(home, capsys, *words, str(path), "--force")
    assert status == 0 and path.read_text() != "mine"
    written = path.read_text()
    assert write(home, capsys, *words, str(path))[0] == 0
    assert path.read_text() == written


@plants("use", "a folder that is not there", "`--output` or `--json`", "", 2,
        " is not there; choose another file")  # fmt: skip
@pytest.mark.parametrize("words", [["export", "--output"], ["alarms", "--json"]], ids=" ".join)
def test_a_folder_that_is_not_there_is_named_as_it_was_given(home, check_refusal, words):
    path = home.parent / "none" / "out.csv"
    check_refusal(*words, path=path, why=f"{path.parent} is not there; choose another file")
    assert not path.parent.exists()


@plants("lost", "a folder of the work directory", "`--output` of four commands", "", 2,
        "holds Plumbline's own data; choose another directory")  # fmt: skip
@pytest.mark.parametrize("command", [["drift"], ["selftest"], ["calibrate"], ["references", "propose"]])
def test_a_directory_of_the_work_directory_is_refused(home, check_refusal, command):
    why = "holds Plumbline's own data; choose another directory"
    check_refusal(*command, "--output", path=home / "store" / "x", why=why)
    assert not (home / "store" / "x").exists()


@plants("use", "a directory that is a file, or below one", "`--output` of a command that measures", "", 2,
        "is not a directory; choose another directory")  # fmt: skip
@pytest.mark.parametrize("command", ["calibrate", "compare a b", "references propose", "drift"])
@pytest.mark.parametrize("below", ["", "new/folder"])
def test_a_directory_that_cannot_be_made_is_refused_before_anything_is_measured(
    home, check_refusal, command, below
):
    file = home.parent / "file"
    file.write_text("")
    why = f"{file} is not a directory; choose another directory"
    check_refusal(*command.split(), "--output", path=file / below, why=why)


@pytest.mark.parametrize("text", ["", '{"schema": 3, "cases": []}', '{"session": "s", "good": true}'])
def test_a_summary_of_an_earlier_night_may_be_written_over(home, capsys, text) -> None:
    """The command gets as far as its own complaint."""
    path = home.parent / "summary.json"
    path.write_text(text)
    assert "--json" not in write(home, capsys, "alarms", "--json", str(path))[1]
