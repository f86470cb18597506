"""Building one program: nothing for nothing, everything that changed, and no failure but of what is broken."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from site_configs.programs.program import PRODUCTS
from spack_envs import install as module
from spack_envs.install import Builder
from spack_envs.installation import DIGEST, RECORD, Installation, read_failure
from spack_envs.layout import SpackEnvironmentError
from spack_envs.provide import FetchError
from spack_envs.spack_repo.plumbline.source_digest import source_digest
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT as SOURCE
from tests.support.threads import at_once

#: Stands for Spack: solves unless a spec is unsolvable, installs what is not broken, and keeps a log.
SPACK = f"""#!{sys.executable}
import json, os, pathlib, re, sys
root = pathlib.Path(__file__).parent
place, words = pathlib.Path(sys.argv[2]), sys.argv[3:]
with (root / "log").open("a") as log:
    print(*words, "in", place.name, os.environ.get("GIT_ALLOW_PROTOCOL", ""), file=log)
text = (place / "spack.yaml").read_text()
programs = ["mpicost@main", "osu-micro-benchmarks@7.4", "intel-mpi-benchmarks@2021.11"]
if "$programs" not in text:
    programs = [each for each in programs if each in text]
lock = place / "spack.lock"
if words == ["concretize"]:
    for each in programs:
        if (root / ("unsolvable-" + each.split("@")[0])).exists():
            sys.exit("==> Error: failed to concretize for the following reasons:\\n     1. no " + each)
    lock.write_text(json.dumps({{"roots": [{{"hash": "abc", "spec": each}} for each in programs]}}))
prefix = root / "installed" / words[-1]
if words[0] == "install":
    assert lock.exists()
    if (root / ("unfetched-" + words[-1])).exists():
        sys.exit("==> Error: FetchError: All fetchers failed for " + words[-1])
    if (root / ("broken-" + words[-1])).exists():
        sys.exit("==> Error: ProcessError: it does not compile")
    for folder in ("bin", "libexec/osu-micro-benchmarks/mpi", "share/plumbline", "share/mpicost"):
        (prefix / folder).mkdir(parents=True, exist_ok=True)
    (prefix / "share/plumbline/build.json").write_text('{{"flags": "-O2"}}')
    if words[-1] == "mpicost":
        sys.path.insert(0, {str(SOURCE)!r})
        from spack_envs.spack_repo.plumbline.source_digest import source_digest
        digest = source_digest(root / "suite")
        (prefix / "share/mpicost/sources.sha256").write_text(digest)
if words[0] == "location":
    print(prefix)
"""


@dataclass(frozen=True)
class Place:
    """An environment and a Spack that only plays."""

    root: Path

    @property
    def directory(self) -> Path:
        return self.root / "environments" / "mpich-5.0.2"

    @property
    def builder(self) -> Builder:
        return Builder(self.root / "work", self.root / "spack", self.directory, lambda line: None)

    def install(self, program: str = "mpicost") -> Installation:
        return self.builder.install(program)

    def make(self, name: str) -> Path:
        """A file that says what is wrong with a package."""
        (self.root / name).write_text("")
        return self.root / name

    def calls(self) -> list[str]:
        """What Spack was called with since the last time."""
        log = self.root / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.strip() for line in lines]


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    """An environment that was written and never built."""
    monkeypatch.setattr(module, "explain_no_answer", lambda product: "")
    place = Place(tmp_path)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "main.c").write_text("int main;")
    (tmp_path / "spack").write_text(SPACK)
    (tmp_path / "spack").chmod(0o755)
    common = tmp_path / "environments" / "common"
    common.mkdir(parents=True)
    for path in (SOURCE / "spack_envs" / "common").glob("*.yaml"):
        (common / path.name).write_text(path.read_text())
    place.directory.mkdir()
    text = (SOURCE / "spack_envs" / "mpich" / "spack.yaml").read_text()
    (place.directory / "spack.yaml").write_text(text)
    machine = {"develop": {"mpicost": {"path": str(tmp_path / "suite")}}}
    (place.directory / "machine.yaml").write_text(yaml.safe_dump(machine))
    return place


@pytest.mark.parametrize("program", PRODUCTS)
def test_second_time_spack_is_not_started(place, program):
    first = place.install(program)
    assert [call.split()[0] for call in place.calls()] == ["concretize", "install", "location"]
    assert first.spec == f"{PRODUCTS[program].package}/abc"
    assert first.folder.is_dir()
    assert place.install(program) == first
    assert place.calls() == []


def test_one_solution_serves_all_programs(place):
    for program in PRODUCTS:
        place.install(program)
    assert [call.split()[0] for call in place.calls()].count("concretize") == 1


HERE = "environments/mpich-5.0.2"
OSU = "installed/osu-micro-benchmarks"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (f"{HERE}/machine.yaml", "# another compiler\n"),
        ("environments/common/definitions.yaml", "# another version\n"),
        (f"{HERE}/spack.yaml", "# another spec\n"),
        (f"{HERE}/spack.lock", " "),
        (f"{HERE}/.plumbline/osu.json", "{"),  # a stamp, damaged
        *((f"{HERE}/spack.lock", None), (f"{OSU}/libexec", None)),
        (f"{OSU}/share/plumbline/build.json", None),
    ],
)
def test_what_was_changed_or_removed_starts_spack(place, path, more):
    place.install("osu")
    place.calls()
    if more is None:
        (place.root / path).rename(place.root / "away")
    else:
        with (place.root / path).open("a") as file:
            file.write(more)
    place.install("osu")
    assert any(call.startswith("install osu-micro-benchmarks") for call in place.calls())
    place.install("osu")
    assert place.calls() == []


def test_changed_sources_build_mpicost_and_nothing_else(place):
    for program in PRODUCTS:
        place.install(program)
    place.calls()
    source = place.root / "suite" / "main.c"
    os.utime(source)
    place.install("mpicost")
    assert place.calls() == []
    source.write_text("int changed;")
    for program in PRODUCTS:
        place.install(program)
    assert [call.split()[:2] for call in place.calls()] == [["install", "mpicost"], ["location", "-i"]]


def test_sources_that_change_during_the_build_are_built_next_time(place, monkeypatch):
    done = place.install("mpicost")
    (Path(done.prefix) / DIGEST).write_text("of what was there before")
    assert place.builder.unchanged(PRODUCTS["mpicost"]) is None
    assert place.install("mpicost").key == done.key


@plants("builds", "a program that does not compile, among others", "an installation of Spack",
        "incomplete", 1, "ProcessError: it does not compile")  # fmt: skip
@pytest.mark.parametrize("program", PRODUCTS)
def test_program_that_does_not_build_hurts_no_other(place, program, declared: Declared):
    cause = place.make(f"broken-{PRODUCTS[program].package}")
    for product in PRODUCTS:
        if product == program:
            with declared.raises(SpackEnvironmentError):
                place.install(product)
        else:
            assert place.install(product).folder.is_dir()
    place.calls()
    cause.unlink()
    place.install(program)
    assert len(place.calls()) == 2


@plants("builds", "a program that cannot be solved, among others", "an environment of Spack", "incomplete", 1,
        "cannot be solved: no ")  # fmt: skip
@pytest.mark.parametrize("program", PRODUCTS)
def test_program_that_cannot_be_solved_hurts_no_other(place, program, declared: Declared):
    """All are solved together; one that makes that impossible must not take the others with it."""
    cause = place.make(f"unsolvable-{PRODUCTS[program].package}")
    others = [product for product in PRODUCTS if product != program]
    with declared.raises(SpackEnvironmentError):
        place.install(program)
    for each in others:
        assert place.install(each).folder.is_dir()
    place.calls()
    for each in others:
        place.install(each)
    assert place.calls() == []
    cause.unlink()
    assert place.install(program).place == str(place.directory)


def test_own_environment_has_what_the_whole_one_has(place):
    place.make("unsolvable-osu-micro-benchmarks")
    place.install("imb")
    own = yaml.safe_load((place.directory / "alone" / "imb" / "spack.yaml").read_text())["spack"]
    whole = yaml.safe_load((place.directory / "spack.yaml").read_text())["spack"]
    assert own["specs"] == ["intel-mpi-benchmarks@2021.11~ext~p2p"]
    expected = [str(place.directory / "machine.yaml"), str(place.root / "environments" / "common")]
    assert own["include"] == expected
    assert {**own, "specs": 0, "include": 0} == {**whole, "specs": 0, "include": 0}


def test_git_is_not_let_near_a_repository_that_does_not_answer(place, monkeypatch):
    monkeypatch.setattr(module, "explain_no_answer", lambda product: "no answer" if product.git else "")
    for program in ("osu", "imb"):
        place.install(program)
    installs = [call for call in place.calls() if call.startswith("install")]
    assert [call.endswith(" file") for call in installs] == [False, True]


def test_repository_is_asked_only_where_a_program_comes_from_one(monkeypatch):
    def silent(arguments, address, seconds):
        assert address == PRODUCTS["imb"].git
        assert seconds <= 10
        raise FetchError(f"{address}: Could not resolve host")

    monkeypatch.setattr(module, "run_git", silent)
    assert module.explain_no_answer(PRODUCTS["imb"]) == "Could not resolve host"
    assert module.explain_no_answer(PRODUCTS["osu"]) == ""
    monkeypatch.setattr(module, "run_git", lambda *_: "abc HEAD")
    assert module.explain_no_answer(PRODUCTS["imb"]) == ""


def test_several_at_once_build_once(place):
    done = at_once(lambda: place.install("osu"))
    assert (len(done), len(set(done))) == (4, 1)
    assert [call.split()[0] for call in place.calls()] == ["concretize", "install", "location"]


@plants("builds", "a Spack that installs nothing and exits 0", "an installation of Spack", "incomplete",
        1, "it is not whole: remove ")  # fmt: skip
def test_spack_that_says_well_done_and_installs_nothing(place, declared: Declared):
    (place.root / "spack").write_text(SPACK.replace('words[0] == "install"', "False"))
    with declared.raises(SpackEnvironmentError, match=r"remove .*/spack/installed"):
        place.install("osu")


@plants("builds", "a folder that is gone", "an environment of Spack", "incomplete", 1,
        "nowhere/.plumbline.lock: No such file")  # fmt: skip
def test_environment_that_is_gone_is_one_line(place, declared: Declared):
    builder = Builder(place.root, place.root / "spack", place.root / "nowhere", print)
    with declared.raises(SpackEnvironmentError):
        builder.install("osu")


@plants("builds", "a damaged record", "an installation of Spack", "incomplete", 1,
        "the installation is damaged")  # fmt: skip
def test_record_of_a_damaged_installation_is_one_line(place, declared: Declared):
    done = place.install("osu")
    assert done.record == {"flags": "-O2"}
    (Path(done.prefix) / RECORD).write_text("{")
    with declared.raises(SpackEnvironmentError):
        _ = done.record


def command(place: Place, program: str) -> subprocess.CompletedProcess[str]:
    """As a check calls it."""
    words = [place.root / "work", place.root / "spack", place.directory, program]
    words += [place.root / "result.json"]
    start = [sys.executable, "-m", "spack_envs.install", *map(str, words)]
    return subprocess.run(start, cwd=SOURCE, capture_output=True, text=True, check=False)


def test_command_tells_what_was_installed(place):
    done = command(place, "osu")
    assert (done.returncode, done.stderr) == (0, "")
    assert Installation(**json.loads((place.root / "result.json").read_text())) == place.install("osu")


@pytest.mark.parametrize(("fault", "without"), [("unfetched", True), ("broken", False)])
def test_command_ends_with_the_reason_and_leaves_what_kind_of_failure_it_was(place, fault, without):
    place.make(f"{fault}-osu-micro-benchmarks")
    done = command(place, "osu")
    assert done.returncode == 1
    assert done.stderr.startswith("osu: ") and done.stderr.count("\n") == 1
    assert ("ProcessError: it does not compile" in done.stderr) == (fault == "broken")
    assert not (place.root / "result.json").exists()
    failure = read_failure(place.root)
    assert failure and failure.without_source is without
    assert done.stderr == f"osu: {failure.reason}\n"


def test_digest_goes_by_contents_and_names(tmp_path):
    (tmp_path / "a.c").write_text("one")
    before = source_digest(tmp_path)
    os.utime(tmp_path / "a.c", (0, 0))
    for name in (".hidden", "README.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("x")
    assert source_digest(tmp_path) == before
    (tmp_path / "a.c").rename(tmp_path / "b.c")
    assert source_digest(tmp_path) != before
