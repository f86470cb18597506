"""Programs that are installed already: where a program comes from, and why there is none."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.common import environment
from site_configs.programs import installed
from site_configs.programs.program import Program

ONEAPI = b"Intel(R) oneAPI DPC++/C++ Compiler 2026.0.0 (2026.0.0.20260331)"
GCC = b"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
PRODUCER = b"GNU C17 12.2.0 -mtune=generic -g -O0 -fPIC"


def an_environment(**changes) -> dict:
    values = {"family": "mpich", "library": "MPICH Version: 5", "launcher": "srun"}
    return environment("mpich", **values | changes)


def extras(tmp_path: Path, *, solved: bool = False, **declared) -> dict:
    """Extras of an environment, with or without a Spack environment of it."""
    if solved:
        (tmp_path / "spack.yaml").touch()
    own = installed.build_extras(
        declared.get("programs", {}), declared.get("lacking", {}), declared.get("unfit", ())
    )
    return own | {"spack_environment": str(tmp_path)}


BY_WHEEL = {"imb": installed.Installed("/w/bin", {"LD_LIBRARY_PATH": "/m/lib"}, installed.WHEEL)}
DECLARED = {"osu": "/sw/osu", "imb": "/sw/imb"}
ABI = "Intel MPI's IMB needs libmpi.so.12, which this MPI has not"


@pytest.mark.parametrize(
    ("program", "spack", "solved", "declared", "source", "why"),
    [
        ("mpicost", "/spack", True, {}, "spack", ""),
        ("mpicost", "/spack", False, {}, "cmake", ""),
        ("mpicost", "", True, {}, "cmake", ""),
        ("osu", "/spack", True, {}, "spack", ""),
        ("osu", "", True, {}, "", "no Spack"),
        ("osu", "/spack", False, {}, "", "no Spack environment for this MPI"),
        ("osu", "", False, {"programs": DECLARED}, "site", ""),
        ("osu", "/spack", True, {"programs": DECLARED}, "site", ""),
        ("osu", "", False, {"programs": BY_WHEEL}, "", "no Spack"),
        ("imb", "", False, {"programs": BY_WHEEL}, "wheel", ""),
        ("imb", "/spack", True, {"programs": BY_WHEEL}, "spack", ""),
        ("imb", "/spack", False, {"programs": BY_WHEEL}, "wheel", ""),
        ("imb", "", False, {"lacking": {"imb": ABI}}, "", f"no Spack; {ABI}"),
        ("osu", "", False, {"lacking": {"imb": ABI}}, "", "no Spack"),
    ],
)
def test_a_program_comes_from_one_place_or_it_is_said_why_not(
    tmp_path: Path, program, spack, solved, declared, source, why
):
    own = extras(tmp_path, solved=solved, **declared)
    assert installed.find_program_source(program, own, spack) == source
    assert installed.explain_missing_program(program, own, spack) == why


@pytest.mark.parametrize(
    ("program", "spack", "declared", "foreseen"),
    [
        ("imb", "", {"lacking": {"imb": ABI}}, True),
        ("imb", "", {"lacking": {"imb": "does not run"}, "unfit": ["imb"]}, False),
        ("imb", "/spack", {"lacking": {"imb": ABI}}, False),
        ("osu", "", {"lacking": {"imb": ABI}}, False),
        ("imb", "", {"programs": BY_WHEEL, "lacking": {"imb": ABI}}, False),
    ],
)
def test_only_a_lack_that_no_trial_or_build_found_is_foreseen(tmp_path, program, spack, declared, foreseen):
    """Whatever fails with an MPI, or is not said at all, is never foreseen."""
    assert installed.is_lack_foreseen(program, extras(tmp_path, **declared), spack) is foreseen


def test_a_program_without_a_package_is_declared_by_its_site_or_not_wanted(tmp_path: Path, monkeypatch):
    record = Program("tilly", sample="tilly_swap", example="/sw/tilly/bin")
    monkeypatch.setitem(installed.PROGRAMS, "tilly", record)
    nowhere = extras(tmp_path, solved=True)
    assert installed.find_program_source("tilly", nowhere, "/spack") == ""
    why = "the site file does not say where it is (programs={'tilly': ...})"
    assert installed.explain_missing_program("tilly", nowhere, "/spack") == why
    assert installed.is_lack_foreseen("tilly", nowhere, "/spack")
    declared = extras(tmp_path, solved=True, programs={"tilly": "/opt/tilly"})
    assert installed.find_program_source("tilly", declared, "/spack") == "site"


@pytest.mark.parametrize("spack", ["", "/spack"])
def test_of_the_standard_abi_there_is_mpicost_alone_built_by_cmake(tmp_path: Path, spack: str):
    own = extras(tmp_path, solved=True, lacking={"imb": ABI}) | {installed.STANDARD_ABI: "/opt/mpich/lib"}
    assert [installed.find_program_source(program, own, spack) for program in ("mpicost", "osu", "imb")] == [
        "cmake",
        "",
        "",
    ]
    foreseen = [installed.is_lack_foreseen(program, own, spack) for program in ("mpicost", "osu", "imb")]
    assert foreseen == [False, True, True]
    assert installed.explain_missing_program("imb", own, spack) == installed.ONLY_MPICOST


def test_checks_are_told_of_what_is_installed():
    entry = an_environment(programs=BY_WHEEL | {"osu": "/sw/osu"}, lacking={"x": "y"})
    assert {key: entry["extras"][key] for key in ("programs", "program_env", "program_origin")} == {
        "programs": {"imb": "/w/bin", "osu": "/sw/osu"},
        "program_env": {"imb": {"LD_LIBRARY_PATH": "/m/lib"}},
        "program_origin": {"imb": "wheel", "osu": "site"},
    }


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ([("imb", "/x")], "[('imb', '/x')]: write {'imb': '/sw/imb/bin'}"),
        ({"mpicost": "/x"}, "'mpicost': write one of imb, osu"),
        ({3: "/x"}, "3: write one of imb, osu"),
        ({"imb": None}, "imb: None: write an absolute path, as in '/sw/imb/bin'"),
        ({"osu": ""}, "osu: '': write an absolute path"),
        ({"osu": "libexec"}, "osu: 'libexec': write an absolute path"),
    ],
)
def test_a_wrong_declaration_is_one_line_with_its_key(programs, said: str):
    with pytest.raises(ValueError) as refused:
        an_environment(programs=programs)
    assert str(refused.value).startswith(f"environment 'mpich': programs: {said}")
    with pytest.raises(ValueError, match=r"^Installed: folder: 'libexec': write an absolute path"):
        installed.Installed("libexec")


@pytest.mark.parametrize("place", ["", "pt2pt", "pt2pt/standard"])
def test_a_folder_is_known_by_an_executable_in_it_or_below(tmp_path: Path, place: str):
    said = installed.describe_missing_executables("osu", str(tmp_path))
    assert said.startswith(f"{tmp_path}: has no osu_latency; write the")
    path = tmp_path / place / "osu_latency"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert installed.find_executable(tmp_path, "osu_latency") == path
    assert installed.describe_missing_executables("osu", str(tmp_path)) == ""
    said = installed.describe_missing_executables("imb", str(tmp_path))
    assert said.startswith(f"{tmp_path}: has no IMB-MPI1")


def test_an_executable_that_is_there_twice_is_nobodys(tmp_path: Path):
    """As in a folder with two versions, of which the first one by name would be measured."""
    for version in ("7.4", "7.5"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "osu_latency").touch()
    assert installed.describe_missing_executables("osu", str(tmp_path)) == (
        f"{tmp_path}: has osu_latency more than once ({tmp_path}/7.4/osu_latency and "
        f"{tmp_path}/7.5/osu_latency); write the folder of one of them"
    )
    assert installed.describe_missing_executables("osu", str(tmp_path / "7.4")) == ""


def test_a_folder_that_is_not_there_is_named():
    assert installed.describe_missing_executables("imb", "/nowhere") == "/nowhere: is not a folder"


@pytest.mark.parametrize(
    ("texts", "facts"),
    [
        ([], installed.ExecutableFacts()),
        (
            [b"Intel(R) MPI Benchmarks 2021.11", GCC, ONEAPI],
            installed.ExecutableFacts("2021.11", "Intel(R) oneAPI DPC++/C++ Compiler 2026.0.0"),
        ),
        (
            [b"#    Intel(R) MPI Benchmarks %s, MPI-1 part", GCC],
            installed.ExecutableFacts(compiler="gcc 12.2.0"),
        ),
        ([b"# OSU MPI%s Latency Test v7.4\n", GCC], installed.ExecutableFacts("7.4", "gcc 12.2.0")),
        ([b"# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.3\n"], installed.ExecutableFacts("5.6.3")),
        ([PRODUCER, GCC], installed.ExecutableFacts("unknown", "gcc 12.2.0", "-mtune=generic -g -O0 -fPIC")),
        ([b"GNU C++14 8.5.0 -O2"], installed.ExecutableFacts("unknown", "gcc 8.5.0", "-O2")),
        ([b"clang version 17.0.6", GCC], installed.ExecutableFacts(compiler="clang version 17.0.6")),
    ],
)
def test_version_compiler_and_flags_are_read_where_they_are(texts, facts):
    assert installed.parse_facts(b"\0".join([b"\x7fELF", *texts, b""])) == facts


@given(st.binary())
def test_of_any_bytes_something_is_told(data: bytes):
    assert installed.parse_facts(data).flags


def test_a_real_program_tells_its_compiler_and_with_debug_information_its_flags(tmp_path: Path):
    source = tmp_path / "a.c"
    source.write_text('const char *name = "# OSU MPI Test v9.1\\n"; int main(void) { return 0; }\n')
    program = tmp_path / "a"
    subprocess.run(["cc", "-g", "-O1", str(source), "-o", str(program)], check=True)
    facts = installed.read_facts(program)
    if not facts.compiler.startswith("gcc"):
        pytest.skip(f"cc is not GCC but {facts.compiler}")
    assert facts.version == "9.1"
    assert {"-g", "-O1"} <= set(facts.flags.split())


def test_a_file_that_is_not_there_tells_nothing(tmp_path: Path):
    assert installed.read_facts(tmp_path / "none") == installed.ExecutableFacts()
    assert installed.read_facts(tmp_path) == installed.ExecutableFacts()


def test_an_installed_program_that_lacks_an_executable_or_a_library_is_explained(tmp_path: Path):
    """The loader is asked with what the program needs to run; that of an MPI may come with a module."""
    for name in ("libmpi.so", "libthreads.so"):
        command = ["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(tmp_path / name), f"-Wl,-soname,{name}"]
        subprocess.run(command, check=True)
    program = tmp_path / "bin" / "IMB-MT"
    program.parent.mkdir()
    source = "int main(void) { return 0; }"
    command = [
        "gcc",
        "-x",
        "c",
        "-",
        "-o",
        str(program),
        "-Wl,--no-as-needed",
        f"-L{tmp_path}",
        "-lmpi",
        "-lthreads",
    ]
    subprocess.run(command, input=source, text=True, check=True)
    folder = str(program.parent)
    assert installed.explain_unloadable(folder, "IMB-IO", {}) == f"{folder} has no IMB-IO"
    assert (
        installed.explain_unloadable(folder, "IMB-MT", {})
        == f"{program} needs libthreads.so, which is not found"
    )
    there = {"LD_LIBRARY_PATH": f'{tmp_path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'}
    assert installed.explain_unloadable(folder, "IMB-MT", there) == ""
    assert installed.explain_unloadable(folder, "IMB-MT", None) == ""
