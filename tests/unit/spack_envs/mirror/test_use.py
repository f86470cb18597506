"""Which mirror counts, and that nothing comes from one that does not verify."""

import shutil
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.commands.site import find_mirrored_wheels
from site_configs.generate import survey
from site_configs.mpi.inventory import Inventory
from site_configs.topology.machine import read_machine
from spack_envs.layout import SpackEnvironmentError
from spack_envs.mirror import manifest, use
from spack_envs.mirror.manifest import MirrorError, MissingPart
from spack_envs.mirror.use import choose_mirror
from tests.support.factories.mirror import REPLACED, make_mirror, write
from tests.support.faults import Declared, plants

WHEEL = "wheels/a-1-py3-none-any.whl"
SOURCE = "sources/_source-cache/archive/22/source.tar.gz"


@pytest.fixture(autouse=True)
def nothing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No mirror of this machine's; the place of the user's own."""
    monkeypatch.delenv("PLUMBLINE_MIRROR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plumbline" / "mirror"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    make_mirror(tmp_path / "mirror")
    return tmp_path / "mirror"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["setup", "--mirror", "/m"], "/m"),
        (["setup", "--mirror=/m"], "/m"),
        (["doctor", "--site", "x", "--mirror=/m"], "/m"),
        (["setup", "--mirror", "/m", "--mirror", "/n"], "/n"),
        (["setup", "--mirror"], ""),
        (["setup", "--mirror="], ""),
        (["setup"], None),
        (["test", "--mirror", "/m"], None),
        (["nightly", "--json", "--mirror"], None),
        ([], None),
    ],
)
def test_the_option_is_found_before_the_words_are_parsed(words, found):
    assert manifest.read_mirror_option(words) == found


def test_this_call_goes_before_the_environment_and_that_before_what_is_remembered(work: Path):
    assert manifest.find_named_mirror(work, None, {}) is None
    manifest.locate_memory(work).write_text("/remembered\n")
    assert manifest.find_named_mirror(work, None, {}) == Path("/remembered")
    found = manifest.find_named_mirror(work, None, {"PLUMBLINE_MIRROR": "/environment"})
    assert found == Path("/environment")
    assert manifest.find_named_mirror(work, "/call", {"PLUMBLINE_MIRROR": "/environment"}) == Path("/call")
    assert manifest.find_named_mirror(work, "none", {"PLUMBLINE_MIRROR": "/environment"}) is None


@plants("builds", "an empty name", "`setup --mirror`", "", 2,
        "--mirror: names nothing")  # fmt: skip
def test_an_option_that_names_nothing_does_not_mean_the_network(work: Path, declared: Declared):
    with declared.raises(UsageError):
        manifest.find_named_mirror(work, "", {})


def test_a_mirror_is_remembered_until_it_is_forgotten(work, mirror, progress, monkeypatch):
    monkeypatch.chdir(mirror.parent)
    found = choose_mirror(work, "mirror", progress)
    assert (found.folder, found.alone, found.wheels) == (mirror, True, mirror / "wheels")
    assert choose_mirror(work, None, progress).folder == mirror
    assert choose_mirror(work, "none", progress) is None
    assert choose_mirror(work, None, progress) is None


def test_a_mirror_from_the_environment_is_remembered_too(work, mirror, progress, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_MIRROR", str(mirror))
    assert choose_mirror(work, None, progress).alone
    assert manifest.read_remembered_mirror(work) == str(mirror)


@plants("builds", "one file of it changed", "a mirror that is chosen", "", 2, "is damaged: ")
@pytest.mark.parametrize("path", [WHEEL, SOURCE, "releases/spack-v1.tar.gz"])
def test_nothing_of_a_damaged_mirror_is_used_and_it_is_not_remembered(work, mirror, progress, path, declared):
    (mirror / path).write_bytes(b"x")
    with declared.raises(MirrorError, match=path):
        choose_mirror(work, str(mirror), progress)
    assert not manifest.locate_memory(work).exists()


@plants("builds", "a source changed after it was chosen", "a mirror", "", 2,
        "is damaged…(./plumbline setup --mirror none does")  # fmt: skip
def test_sources_are_verified_by_every_later_call(work, mirror, progress, declared: Declared):
    """Nothing else looks at them: a source that is told by a commit has no checksum in its recipe."""
    choose_mirror(work, str(mirror), progress)
    (mirror / SOURCE).write_bytes(b"another source"[: len(b"a source")])
    with declared.raises(UsageError, match=r"is damaged.*\(./plumbline setup --mirror none does"):
        choose_mirror(work, None, progress)


@plants("builds", "a mirror that was chosen and is gone", "a mirror", "", 2,
        "is not a mirror…--mirror none does without it")  # fmt: skip
def test_a_remembered_mirror_that_is_gone_is_an_error_and_not_the_network(work, mirror, progress, declared):
    choose_mirror(work, str(mirror), progress)
    shutil.rmtree(mirror)
    with declared.raises(UsageError, match=r"is not a mirror.*--mirror none does without it"):
        choose_mirror(work, None, progress)


@plants("security", "a path with characters that Spack reads otherwise", "a mirror", "", 2,
        "letters, digits")  # fmt: skip
def test_a_path_that_spack_would_change_is_refused(work, tmp_path, progress, declared: Declared):
    make_mirror(tmp_path / "a mirror")
    with declared.raises(MirrorError):
        choose_mirror(work, str(tmp_path / "a mirror"), progress)


@plants("builds", "wheels for Python 2.7", "a mirror that is chosen", "", 2,
        "Python 2.7")  # fmt: skip
def test_wheels_for_another_python_are_found_before_they_are_used(work, mirror, progress, declared):
    write(mirror, (WHEEL,), releases=(), python="2.7")
    with declared.raises(MirrorError):
        choose_mirror(work, str(mirror), progress)


def test_what_a_mirror_lacks_is_told(work, mirror, progress):
    make_mirror(mirror)
    paths = tuple(
        path.relative_to(mirror).as_posix()
        for path in mirror.rglob("*")
        if path.is_file() and path.name != "mirror.json"
    )
    write(mirror, paths, missing=(MissingPart("source of x 1", "no network"),))
    choose_mirror(work, str(mirror), progress)
    assert progress.notes == [f"mirror {mirror} lacks source of x 1 (no network)"]


def test_the_users_own_mirror_gives_sources_only(work, nothing_named, progress):
    make_mirror(nothing_named)
    found = choose_mirror(work, None, progress)
    assert (found.folder, found.alone, found.wheels) == (nothing_named, False, None)
    assert found.unpacked(work) is None
    assert found.sources.folder == nothing_named / "sources"
    assert not manifest.locate_memory(work).exists()


def test_the_users_own_mirror_is_noted_if_it_is_damaged_and_not_used(work, nothing_named, progress):
    make_mirror(nothing_named)
    (nothing_named / SOURCE).unlink()
    assert choose_mirror(work, None, progress) is None
    assert progress.notes[0].startswith("mirror in the user's cache is not used: ")


def test_a_folder_without_a_manifest_is_not_the_users_mirror(work, nothing_named, progress):
    nothing_named.mkdir(parents=True)
    assert choose_mirror(work, None, progress) is None
    assert progress.notes == []


@plants("builds", "Spack itself, changed", "a mirror", "incomplete", 1, "is damaged")
def test_spack_comes_out_of_the_mirror_and_is_verified_as_it_does(work, mirror, progress, declared):
    found = choose_mirror(work, str(mirror), progress)
    unpacked = found.unpacked(work)
    expected = {"spack": "spack", "spack-packages": "spack-packages"}
    assert {name: (folder / "told").read_text() for name, folder in unpacked.items()} == expected
    assert found.unpacked(work) == unpacked
    shutil.rmtree(unpacked["spack"])
    (mirror / "releases" / "spack-v1.tar.gz").write_bytes(b"x")
    with declared.raises(SpackEnvironmentError):
        found.unpacked(work)
    assert not unpacked["spack"].exists()


@plants("builds", "no Spack in it", "a mirror", "incomplete", 1,
        "this mirror has no spack")  # fmt: skip
def test_a_mirror_without_spack_says_so(work, mirror, progress, declared: Declared):
    write(mirror, (WHEEL,), releases=())
    for path in ("sources", "releases"):
        shutil.rmtree(mirror / path)
    found = choose_mirror(work, str(mirror), progress)
    with declared.raises(SpackEnvironmentError):
        found.unpacked(work)


def test_a_replaced_source_is_told_and_handed_to_spack(work, mirror, progress):
    paths = (WHEEL, SOURCE, "releases/spack-v1.tar.gz", "releases/spack-packages-v1.tar.gz")
    write(mirror, paths, replaced=(REPLACED,))
    found = choose_mirror(work, str(mirror), progress)
    (substitute,) = found.sources.substitutes
    assert (substitute.package, substitute.sha256) == (REPLACED.package, REPLACED.sha256)
    use.report_replaced(found, progress)
    assert "osu-micro-benchmarks 7.4 is built from a git copy" in progress.notes[-1]
    assert "not from the official source" in progress.notes[-1]


@pytest.mark.parametrize("scheduler", [None, "some scheduler"])
def test_the_wheels_of_a_new_site_come_from_the_mirror_too(work, mirror, progress, monkeypatch, scheduler):
    manifest.locate_memory(work).write_text(f"{mirror}\n")
    asked = []
    found = Inventory(read_machine(), (), ())
    monkeypatch.setattr(survey, "take_inventory", lambda *words: asked.append(words) or found)
    monkeypatch.setattr(survey.login_node, "find_login_mpis", lambda *words: asked.append(words))
    here = WorkDirectory(work, work)
    wheels = lambda: find_mirrored_wheels(here, progress)  # noqa: E731
    survey.find_mpis(here, scheduler, ["mpich"], wheels, progress)
    assert [words[-1] for words in asked] == [mirror / "wheels"]
