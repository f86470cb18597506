"""Checking what people write: one line for each fault, and nothing passes that was not looked at."""

import re
import shutil
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands import lint as linting
from postprocess.commands import site_check
from postprocess.commands.lint import lint
from postprocess.extensions.papers import printed
from postprocess.model.session import Selection
from postprocess.references import reference_file
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import preview_plan
from site_configs.validation.site_files import list_site_names
from tests.support.factories.launch import write_references
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.support.plumbline_runner import unwrap

SITE = (ROOT / "site_configs" / "slurm_cluster.py").read_text()

HEAD = "import reframe as rfm\nfrom reframe_checks.common.mpicost import MpicostCheck\n"
CHECK = HEAD + "@rfm.simple_test\n"
FAMILY = CHECK + "class family(MpicostCheck):\n    table = {}\n"
STRANGER = CHECK + (
    "class stranger(rfm.RunOnlyRegressionTest):\n"
    "    valid_systems = valid_prog_environs = ['*']\n    executable = 'false'\n"
    "    @rfm.core.builtins.sanity_function\n    def well(self):\n        return True\n"
)


def said(progress: Progress) -> str:
    return "\n".join(unwrap(progress.console.file.getvalue()))


def test_a_sound_reference_file_is_well(work, progress, tmp_path: Path):
    path = write_references(tmp_path)
    assert lint(work, [path, tmp_path], progress) == 0
    assert said(progress).splitlines() == [f"{path}: ok", f"{tmp_path}: ok"]


def test_each_fault_of_a_reference_file_is_a_line(work, progress, tmp_path: Path):
    path = write_references(tmp_path)
    text = path.read_text().replace("\ts\t", "\tus\t")
    path.write_text(text)
    faults = reference_file.lint_reference_file(path)
    assert lint(work, [path], progress) == 1
    assert said(progress).splitlines() == [f"{path}: {len(faults)} wrong", *faults]
    assert len(faults) > 1


def test_printed_figures_are_checked_beside_references_and_alone(work, progress, tmp_path: Path):
    write_references(tmp_path)
    history = Path(shutil.copytree(printed.DIRECTORY, tmp_path / "historical"))
    assert lint(work, [tmp_path, history], progress) == 0
    ratios, costs = history / "luecke2001_ratios.csv", history / "rus_costs.csv"
    ratios.write_text(ratios.read_text().replace(",933,", ",-933,"))
    costs.unlink()
    (history / "stray.csv").write_text("a\n")
    for folder in (tmp_path, history):
        assert lint(work, [folder], progress) == 1
        faults = said(progress).splitlines()[-3:]
        assert faults[0].startswith(f"{ratios}: row 5: ratio: '-933'")
        assert faults[1].startswith(f"{costs}: No such file")
        assert faults[2] == f"{history / 'stray.csv'}: is never read; remove it"


@plants("use", "a file that is not there", "`lint`", "", 2,
        "…")  # fmt: skip
def test_a_file_that_is_not_there_is_wrong_use(work, progress, tmp_path: Path, declared: Declared):
    path = tmp_path / "none.tsv"
    with declared.raises(UsageError) as refused:
        lint(work, [path], progress)
    fix = "name a site, a check or references that are there"
    assert str(refused.value) == f"{path}: no such file or directory; {fix}"


@pytest.mark.parametrize("name", ["readme.md", "references.csv"])
def test_what_cannot_be_checked_is_not_well(work, progress, tmp_path: Path, name):
    path = tmp_path / name
    path.touch()
    assert lint(work, [path], progress) == 1
    assert f"{path}: neither a site or check (.py)," in said(progress)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import reframe as rfm\n", "matches no case"),
        ("class Broken(\n", "check.py"),
        ("import reframe as rfm\nimport no_such_module\n", "no_such_module"),
        ("\udcff", "check.py"),
        (FAMILY.format({}), "table: give every routine of the family a size"),
        (STRANGER, "stranger: plans no case"),
    ],
)
def test_a_check_that_does_not_load_is_not_well(work, progress, tmp_path: Path, monkeypatch, text, problem):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    path = tmp_path / "check.py"
    path.write_text(text, errors="surrogateescape")
    assert lint(work, [path], progress) == 1
    assert problem in said(progress).splitlines()[-1]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_family_of_which_nothing_is_chosen_runs_nowhere(work, tmp_path: Path):
    path, site = tmp_path / "check.py", ROOT / "site_configs" / "slurm_cluster.py"
    families = {"one": {"bcast": [8]}, "two": {"scatter": [8]}}
    classes = [
        FAMILY.replace("family", name).format(table).removeprefix(HEAD) for name, table in families.items()
    ]
    path.write_text(HEAD + "".join(classes))
    reframe = ReframeDriver(work.source, work.root, work.new_session(), [], None)
    choice = {"routines": ["bcast"], "processes": [2]}
    planned = preview_plan(reframe, Selection(site, checks=path, choice=choice, only_looking=True))
    assert {case.routine for launch in planned for case in launch.cases} == {"bcast"}
    assert all(launch.cases for launch in planned)


@plants("schedulers", "a node of one core", "a site file, in `lint`", "", 1, "one core is too few")
def test_a_site_of_one_core_has_no_process_count(work, progress, tmp_path, declared):
    path = tmp_path / "site.py"
    path.write_text(re.sub("topology=.*", "topology=Topology(1),", SITE))
    declared.check((), lint(work, [path], progress), said(progress).splitlines()[-1:])


def test_a_check_of_ours_is_well(work, progress):
    assert lint(work, [ROOT / "reframe_checks" / "links.py"], progress) == 0
    assert "24 cases in 2 launches" in said(progress)


def test_a_directory_in_which_there_is_nothing_to_check_is_not_well(work, progress, tmp_path: Path):
    assert lint(work, [tmp_path], progress) == 1
    assert f"{tmp_path}: has no reference file" in said(progress)


def test_the_places_for_references_may_be_empty(progress, tmp_path: Path):
    work = WorkDirectory(tmp_path / "home", tmp_path)
    (tmp_path / "reference_data").mkdir()
    work.provisional.mkdir(parents=True)
    assert lint(work, work.reference_roots, progress) == 0


def test_without_a_path_references_and_every_site_are_checked(work, progress, monkeypatch):
    work.provisional.mkdir(parents=True)
    looked: list[Path] = []
    monkeypatch.setattr(linting, "lint_path", lambda _, path, __: looked.append(path) or [])
    assert lint(work, [], progress) == 0
    sites = [ROOT / "site_configs" / f"{name}.py" for name in sorted(list_site_names(ROOT))]
    assert {"local", "slurm_cluster"} <= {path.stem for path in sites}
    assert looked == [ROOT / "reference_data", work.provisional, *sites]


# With ReFrame: a dry run of every check on the site.


def test_a_site_is_checked_as_site_check_does(work, progress, monkeypatch):
    """``test_site_examples`` has what comes of it."""
    path = ROOT / "site_configs" / "slurm_cluster.py"
    monkeypatch.setattr(site_check, "dry_run_site", lambda *_: site_check.DryRun([], [], []))
    monkeypatch.setattr(site_check, "find_unmeasured_routines", lambda *_: [])
    assert lint(work, [path], progress) == 0
    first, *_, last = said(progress).splitlines()
    assert first.startswith("note: this host is none of ")
    assert last == f"{path}: ok"


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        ('library="Open MPI v5.0"', 'library=""', "environment(", "library: '': write name and version"),
        ("environment, partition, site", "environment, partition", "site(", "name 'site'"),
    ],
)
def test_a_wrong_site_is_one_line_that_names_it(work, progress, tmp_path, old, new, line, complaint):
    assert old in SITE
    path = tmp_path / "mine.py"
    text = SITE.replace(old, new)
    path.write_text(text)
    assert lint(work, [path], progress) == 1
    first, fault = said(progress).splitlines()
    assert first == f"{path}: 1 wrong"
    number = next(n for n, each in enumerate(text.splitlines(), 1) if line in each)
    assert fault.startswith(f"{path}:{number}: ") and complaint in fault


def test_a_folder_inside_of_references_is_checked_as_a_part_of_them(work, progress):
    inside = work.source / "reference_data" / "simulated"
    assert lint(work, [inside], progress) == 0
