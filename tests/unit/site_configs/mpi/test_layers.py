"""MPIs on another library below them: taken only if a world of two had that library in its memory."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.case import NAME
from site_configs.mpi import inventory, wheels
from site_configs.mpi.family import ABI_SUFFIX, LAYERS, Mpi, MpiWord, Unusable, name_distinctly, parse_mpi_word
from site_configs.mpi.inventory import collect_inventory, find_release, load_inventory
from site_configs.mpi.layers import (
    KNOWN,
    adopt_layer,
    build_layer_environment,
    explain_override,
    find_layer_folder,
    is_as_tried,
    shares_memory,
)
from tests.support.fake_mpis import COMPILES, MPICH, OPENMPI, install, says, script
from tests.support.faults import Declared, each_of, plants

LIBRARY = "libucp.so.0"
LAYER = "ucx@1.19.0"
WORD = f"mpich+{LAYER}"


def starts(loaded: Path | str, version: str = "1.19.0") -> str:
    """The body of a launcher whose program has this file, which tells this version, in its memory."""
    return f"{says(MPICH)}\necho 'loaded /lib/libc.so.6'\necho 'loaded {loaded}'\necho 'version {version}'"


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "cc" / "cc", COMPILES)
    monkeypatch.setenv("PATH", str(tmp_path / "cc"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [])


@pytest.fixture
def ucx(tmp_path: Path) -> Path:
    """The folder of a UCX that is installed somewhere."""
    folder = tmp_path / "ucx" / "lib"
    folder.mkdir(parents=True)
    (folder / f"{LIBRARY}.0.0").touch()
    (folder / LIBRARY).symlink_to(f"{LIBRARY}.0.0")
    return folder


@pytest.fixture
def mpi(tmp_path: Path, ucx: Path) -> Mpi:
    mpicc = install(tmp_path / "mpich", MPICH, starts=starts(ucx / f"{LIBRARY}.0.0"))
    launcher = str(mpicc.with_name("mpiexec"))
    text = "MPICH Version: 5.0.2 MPICH Release date: today"
    return Mpi("a", "mpich", "5.0.2", text, "path", str(tmp_path / "mpich"), str(mpicc), launcher)


def problem(mpi: Mpi, folder: Path | str) -> str:
    found = adopt_layer(mpi, LAYER, str(folder), WORD)
    assert isinstance(found, Unusable) and found.mpicc == WORD and "\n" not in found.problem
    return found.problem


def test_an_mpi_with_the_library_in_its_memory_is_taken(mpi: Mpi, ucx: Path):
    found = adopt_layer(mpi, LAYER, str(ucx), WORD)
    assert found == replace(mpi, layer=LAYER, env=found.env)
    assert found.env["LD_LIBRARY_PATH"] == str(ucx)
    assert found.env["MPIR_CVAR_NOLOCAL"] == "1"  # else no message of one node takes it


def test_it_is_started_as_it_will_be_for_measuring(mpi: Mpi, ucx: Path):
    body = starts(ucx / LIBRARY)
    script(Path(mpi.mpiexec), f'test "$LD_LIBRARY_PATH:$MPIR_CVAR_NOLOCAL" = "{ucx}:1" || exit 1\n{body}')
    assert isinstance(adopt_layer(mpi, LAYER, str(ucx), WORD), Mpi)


@plants("builds", "an MPI that takes its own UCX, not the one asked for", "mpich+ucx@1.19.0",
        "", 2, "it does not run on ucx@1.19.0: it takes …/own/libucp.so.0")  # fmt: skip
def test_an_mpi_that_takes_another_library_is_refused(mpi: Mpi, ucx: Path, declared: Declared):
    script(Path(mpi.mpiexec), starts("/own/libucp.so.0"))
    declared.check((), 2, [problem(mpi, ucx)])


@plants("builds", "an MPI that has two UCX in its memory, its own and the one asked for", "mpich+ucx@1.19.0",
        "", 2, "it does not run on ucx@1.19.0: it takes …/own/libucp.so.0")  # fmt: skip
def test_an_mpi_that_has_another_library_too_is_refused(mpi: Mpi, ucx: Path, declared: Declared):
    script(Path(mpi.mpiexec), f"{starts(ucx / LIBRARY)}\necho 'loaded /own/libucp.so.0'")
    declared.check((), 2, [problem(mpi, ucx)])


@plants("builds", "a library that is of another version than its wheel says", "mpich+ucx@1.19.0",
        "", 2, "it does not run on ucx@1.19.0: …/libucp.so.0 says that it is 1.18.1")  # fmt: skip
def test_a_library_of_another_version_is_refused(mpi: Mpi, ucx: Path, declared: Declared):
    script(Path(mpi.mpiexec), starts(ucx / LIBRARY, "1.18.1"))
    declared.check((), 2, [problem(mpi, ucx)])
    script(Path(mpi.mpiexec), starts(ucx / LIBRARY, ""))
    assert problem(mpi, ucx).endswith("says that it is nothing")
    rebuilt, installed = (adopt_layer(mpi, f"ucx@{each}", str(ucx), WORD) for each in ("1.20.0.post1", ucx))
    assert isinstance(rebuilt, Unusable) and isinstance(installed, Mpi)  # what is installed has no number
    script(Path(mpi.mpiexec), starts(ucx / LIBRARY, "1.20.0"))
    assert isinstance(adopt_layer(mpi, "ucx@1.20.0.post1", str(ucx), WORD), Mpi)


def test_no_library_of_the_mpis_own_is_named_beside_another_one(mpi: Mpi, ucx: Path):
    """Wheels of Intel MPI to 2021.15 have their own libfabric, and variables that name it."""
    own = {"I_MPI_OFI_LIBRARY": "/own/lib", "FI_PROVIDER_PATH": "/own", "I_MPI_ROOT": "/own"}
    intel, known = replace(mpi, family="intel-mpi", env=own), KNOWN["libfabric"]
    found = build_layer_environment(intel, known, str(ucx))
    assert found == {
        "I_MPI_ROOT": "/own",
        "I_MPI_FABRICS": "ofi",
        "LD_LIBRARY_PATH": str(ucx),
        "I_MPI_OFI_LIBRARY": str(ucx / known.library),  # the user's shell may name another one
        "FI_PROVIDER_PATH": str(ucx / "libfabric"),
    }
    assert build_layer_environment(intel, known, "") == own | {"I_MPI_FABRICS": "ofi"}
    (ucx / "prov").mkdir()
    (ucx / "prov" / "libtcp-fi.so").touch()
    assert build_layer_environment(intel, known, str(ucx))["FI_PROVIDER_PATH"] == str(ucx / "prov")


OVERRIDES = {
    ("LD_PRELOAD", "/other/libz.so /other/libucp.so.0"): plants(
        "environment", "`LD_PRELOAD` with another UCX", "the user's shell, beside `mpich+ucx@1.19.0`", "", 2,
        "mpich+ucx@1.19.0: LD_PRELOAD of this shell has a libucp.so.0; unset it"),
    ("I_MPI_OFI_LIBRARY", "/other/libfabric.so.1"): plants(
        "environment", "`I_MPI_OFI_LIBRARY`, which names another libfabric",
        "the user's shell, beside `intel-mpi+libfabric`", "", 2,
        "intel-mpi+libfabric: I_MPI_OFI_LIBRARY of this shell names a libfabric.so.1; unset it"),
}  # fmt: skip


@pytest.mark.parametrize("variable", each_of(OVERRIDES))
def test_a_shell_that_takes_another_library_is_told_even_if_it_was_tried_before(
    mpi: Mpi, ucx: Path, variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch, declared: Declared
):
    name, value = variable
    intel = replace(mpi, family="intel-mpi")
    script(Path(mpi.mpiexec), starts("/own/libfabric.so.1") + f"\necho 'loaded {ucx}/{LIBRARY}'")
    chosen, word, folder = (mpi, WORD, str(ucx)) if name == "LD_PRELOAD" else (intel, "intel-mpi+libfabric", "")
    layer = word.partition("+")[2]
    before = adopt_layer(chosen, layer, folder, word)
    assert isinstance(before, Mpi) and is_as_tried(before, chosen, folder)
    monkeypatch.setenv(name, value)
    assert not is_as_tried(before, chosen, folder)
    after = adopt_layer(chosen, layer, folder, word)
    assert isinstance(after, Unusable)
    declared.check((), 2, [f"{after.mpicc}: {after.problem}"])


@plants("environment", "`LD_LIBRARY_PATH` with another UCX", "the user's shell, beside `mpich+ucx`", "", 2,
        "it does not run on ucx: it takes …/ucx/lib/libucp.so.0.0.0, which is not below …; see")  # fmt: skip
def test_its_own_library_is_none_that_the_shell_leads_to(mpi: Mpi, ucx: Path, monkeypatch, declared: Declared):
    """Else `mpich+ucx` and `mpich+ucx@/opt/ucx` were the same library, and so the same."""
    assert isinstance(adopt_layer(mpi, "ucx", "", "word"), Mpi)  # it has none: that of the system is its own
    own = Path(mpi.prefix, "lib", "mpich")
    own.mkdir(parents=True)
    (own / LIBRARY).touch()
    other = adopt_layer(mpi, "ucx", "", "word")
    assert isinstance(other, Unusable)
    declared.check((), 2, [other.problem])
    script(Path(mpi.mpiexec), starts(own / LIBRARY))
    there = adopt_layer(mpi, "ucx", "", "word")
    assert isinstance(there, Mpi) and is_as_tried(there, mpi, "")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(ucx))
    assert not is_as_tried(there, mpi, "")


def test_no_variable_may_be_set_that_decides_on_what_it_runs(mpi: Mpi, ucx: Path):
    there = adopt_layer(mpi, LAYER, str(ucx), WORD)
    assert isinstance(there, Mpi)
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "MPIR_CVAR_NOLOCAL"):
        assert name in explain_override(there, {"UCX_TLS": "tcp", name: "x"})
    assert explain_override(there, {"UCX_TLS": "tcp"}) == ""
    assert explain_override(mpi, {"LD_LIBRARY_PATH": "x"}) == ""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (says(MPICH), f"it loads no {LIBRARY}"),
        (says(MPICH, "world of 1"), "world of 1"),
        ("echo undefined symbol >&2; exit 127", "starting failed with exit code 127: undefined symbol"),
    ],
)
def test_an_mpi_that_does_not_run_on_it_is_refused(mpi: Mpi, ucx: Path, body: str, why: str):
    script(Path(mpi.mpiexec), body)
    assert why in problem(mpi, ucx)
    assert why in problem(mpi, "")  # likewise on its own


def test_other_families_and_the_standard_abi_have_no_layer(mpi: Mpi, ucx: Path):
    told = problem(replace(mpi, family="intel-mpi"), ucx)
    assert "ucx is exchanged below mpich, openmpi only, not intel-mpi" in told
    assert "are not for one MPI" in problem(replace(mpi, standard_abi="/lib"), ucx)


def test_only_on_libfabric_no_memory_is_shared_in_a_node(mpi: Mpi):
    layers = ("", LAYER, "libfabric", "libfabric@2.4.0")
    assert [shares_memory(replace(mpi, layer=layer)) for layer in layers] == [True, True, False, False]


def test_a_library_is_found_below_a_prefix_or_in_a_wheel(tmp_path: Path, ucx: Path, monkeypatch):
    assert find_layer_folder(f"ucx@{ucx.parent}", tmp_path, None, print) == str(ucx)
    assert find_layer_folder(f"ucx@{ucx}", tmp_path, None, print) == str(ucx)
    assert find_layer_folder("ucx", tmp_path, None, print) == ""
    with pytest.raises(wheels.WheelError, match=f"no {LIBRARY} below"):
        find_layer_folder(f"ucx@{tmp_path}/none", tmp_path, None, print)
    monkeypatch.setattr(wheels, "install_prefix", lambda *given: ucx.parent)
    said: list[str] = []
    assert find_layer_folder(LAYER, tmp_path, None, said.append) == str(ucx)
    assert said == ["installing ucx 1.19.0 from its wheel"]


def test_each_layer_has_wheels_and_families():
    for name in LAYERS:
        assert wheels.CARRIERS.get(name) or wheels.read_locked_version(name)
        assert {*KNOWN[name].env} <= {*wheels.FAMILIES}
    assert set(KNOWN) == set(LAYERS) >= set(wheels.CARRIERS)


# Words and names.


@given(
    st.from_regex(r"[a-z]+(@[0-9][0-9.]*)?|/[a-z/]+", fullmatch=True),
    st.booleans(),
    st.sampled_from(["", "ucx", LAYER, "ucx@/opt/ucx", "libfabric@2.5.1"]),
)
def test_a_word_reads_back(plain: str, by_abi: bool, layer: str):
    word = f"{plain}{ABI_SUFFIX if by_abi else ''}{f'+{layer}' if layer else ''}"
    assert parse_mpi_word(word) == MpiWord(plain, by_abi, layer)


def test_each_has_a_name_of_its_own(mpi: Mpi):
    layers = ("", "ucx", LAYER, "ucx@/opt/a", "ucx@/opt/b", "libfabric", "libfabric@1.19.0")
    names = [each.name for each in name_distinctly([replace(mpi, layer=layer) for layer in layers])]
    assert names[:3] == ["mpich-5_0_2", "mpich-5_0_2-on-ucx", "mpich-5_0_2-on-ucx-1_19_0"]
    assert len({*names}) == len(names) and all(NAME.fullmatch(name) for name in names)


# The inventory.


def test_what_is_asked_for_is_there_and_tried_again_only_if_it_changed(mpi: Mpi, ucx: Path, tmp_path: Path):
    word = f"{mpi.prefix}+ucx@{ucx}"
    said: list[str] = []
    (only,) = collect_inventory(tmp_path / "work", (word,), said.append).mpis
    assert only.layer == f"ucx@{ucx}"
    found = load_inventory(tmp_path / "work")
    assert (found.mpis, find_release(found, tmp_path, word)) == ((only,), only)
    assert find_release(found, tmp_path, mpi.prefix) is None
    trying = f"trying mpich 5.0.2 on ucx@{ucx}"
    collect_inventory(tmp_path / "work", (word,), said.append)
    assert said.count(trying) == 1
    said.clear()
    collect_inventory(tmp_path / "work", (word, f"{mpi.prefix}+ucx"), said.append)
    assert sum(line.startswith("asking ") for line in said) == 1  # of one wrapper, for both
    os.utime(ucx / LIBRARY)
    collect_inventory(tmp_path / "work", (word,), said.append)
    assert said.count(trying) == 1


def test_one_that_cannot_be_had_says_why_by_its_word(tmp_path: Path):
    mpicc = install(tmp_path / "openmpi", OPENMPI)
    (only,) = collect_inventory(tmp_path / "w", (f"{mpicc.parent.parent}+ucx",), lambda _: None).unusable
    assert only.mpicc.endswith("+ucx") and f"it loads no {LIBRARY}" in only.problem
