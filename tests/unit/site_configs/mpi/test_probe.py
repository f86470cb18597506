"""A compiler wrapper is asked what it is; whatever it does, there is an answer of one line."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from site_configs.common import Topology, environment, partition, site
from site_configs.mpi import probe
from site_configs.mpi import probe as module
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.wheels import try_imb
from tests.support.fake_mpis import COMPILES, MPICH, OPENMPI, all_end, debian, install, says, script
from tests.support.interactive_job import IN_A_JOB


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 20)


def candidate(mpicc: Path, **more) -> probe.Candidate:
    return probe.Candidate(mpicc, mpicc.with_name("mpiexec"), "path", **more)


def unusable(mpicc: Path, **more) -> str:
    """Why a wrapper is not usable."""
    found = probe.probe_wrapper(candidate(mpicc, **more))
    assert isinstance(found, Unusable)
    assert (found.mpicc, found.origin) == (str(mpicc), "path")
    assert "\n" not in found.problem and len(found.problem) < 700
    return found.problem


def test_a_wrapper_that_works_is_an_mpi(tmp_path: Path):
    mpicc = install(tmp_path / "mpi")
    assert probe.probe_wrapper(candidate(mpicc)) == Mpi(
        name="mpich-5_0_2",
        family="mpich",
        version="5.0.2",
        library="MPICH Version: 5.0.2 MPICH Release date: today",
        origin="path",
        prefix=str(tmp_path / "mpi"),
        mpicc=str(mpicc),
        mpiexec=str(mpicc.with_name("mpiexec")),
        env={"HYDRA_BINDING": "core"},
    )


def test_the_program_is_compiled_from_a_source_and_started_twice(tmp_path: Path):
    log = tmp_path / "log"
    compiles = f'head -2 "$1" >> {log}; {COMPILES}'
    mpicc = install(tmp_path, compiles=compiles, starts=f'ls "$3" && echo "$1 $2" >> {log}; exit 3')
    assert "exit code 3" in unusable(mpicc)
    assert log.read_text() == "\n#include <mpi.h>\n-n 2\n"


def test_what_a_module_sets_is_there_and_is_kept(tmp_path: Path):
    mpicc = install(tmp_path, starts=says("$SETTING v5.0.1").replace("'", '"'))
    found = probe.probe_wrapper(candidate(mpicc, module="m/1", env=(("SETTING", "Open MPI"),)))
    assert (found.family, found.version, found.module) == ("openmpi", "5.0.1", "m/1")
    assert found.env["SETTING"] == "Open MPI"


def test_the_users_variables_are_there_and_are_not_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SETTING", "MPICH Version:")
    mpicc = install(tmp_path, starts=says("$SETTING 4.3.0").replace("'", '"'))
    found = probe.probe_wrapper(candidate(mpicc))
    assert found.version == "4.3.0"
    assert "SETTING" not in found.env


def test_two_processes_may_share_a_core_while_asking_and_not_later(tmp_path: Path):
    log = tmp_path / "log"
    found = probe.probe_wrapper(candidate(install(tmp_path, OPENMPI, starts=f"env > {log}; {says(OPENMPI)}")))
    assert "OMPI_MCA_rmaps_base_oversubscribe=1" in log.read_text()
    assert not any("oversubscribe" in name for name in found.env)


@pytest.mark.parametrize(
    ("compiles", "starts", "problem"),
    [
        ("echo no gcc >&2; exit 1", None, "compiling failed with exit code 1: no gcc"),
        ("echo no gcc; exit 77", None, "compiling failed with exit code 77: no gcc"),
        ("kill -9 $$", None, "compiling failed with exit code -9: "),
        (COMPILES, "printf 'one\\ntwo\\n' >&2; exit 1", "starting failed with exit code 1: one two"),
        (COMPILES, "printf '\\377\\376' >&2; exit 1", "starting failed with exit code 1: \ufffd\ufffd"),
        (COMPILES, says("HPE MPT 2.25"), "unknown MPI library: HPE MPT 2.25"),
        (COMPILES, says(""), "unknown MPI library: "),
    ],
)
def test_a_wrapper_that_fails_says_at_which_step(tmp_path, compiles, starts, problem):
    assert unusable(install(tmp_path, compiles=compiles, starts=starts)) == problem


@pytest.mark.parametrize(
    ("starts", "shown"),
    [
        (says(MPICH, "world of 1\\nworld of 1"), "world of 1"),
        (says(MPICH, "Hello!\\nworld of 2"), "Hello!"),
        ("exit 0", "no output"),
        ("printf '\\033[31mx\\r\\ny\\n'", "\x1b[31mx"),
        ("yes | head -c 100000 | tr -d '\\n'", "y" * 80),
    ],
)
def test_a_launcher_of_another_mpi_is_seen(tmp_path: Path, starts: str, shown: str):
    """It starts two worlds of one process, or prints nonsense."""
    mpicc = install(tmp_path, starts=starts)
    mpiexec = mpicc.with_name("mpiexec")
    assert unusable(mpicc) == f"{mpiexec} does not start programs of {mpicc}: {shown}"


def test_what_is_not_there_or_may_not_be_run_is_named(tmp_path: Path):
    mpicc = install(tmp_path)
    mpicc.with_name("mpiexec").unlink()
    assert unusable(mpicc) == f"starting: No such file or directory: {tmp_path}/bin/mpiexec"
    assert unusable(tmp_path) == f"compiling: Permission denied: {tmp_path}"


@pytest.mark.parametrize(
    "hangs", ["sleep 600", "sleep 600 & wait", "trap '' TERM; sleep 600", "sleep 600 & exit 0"]
)
@pytest.mark.parametrize("step", ["compiling", "starting"])
def test_a_wrapper_that_hangs_is_ended_with_all_it_started(tmp_path, monkeypatch, hangs, step):
    monkeypatch.setattr(module, "TIME_LIMIT", 0.3)
    bodies = {"compiling": {"compiles": hangs}, "starting": {"starts": hangs}}[step]
    mpicc = install(tmp_path, **bodies)
    mark = ("PLUMBLINE_TEST_MARK", str(tmp_path))
    assert unusable(mpicc, env=(mark,)) == f"{step} did not end within 0.3 s"
    assert all_end(*mark)


def test_a_launcher_that_asks_a_question_gets_no_answer(tmp_path: Path):
    """It must not wait for the user, nor eat what the user types for another program."""
    mpicc = install(tmp_path, starts=f"cat > {tmp_path / 'answer'}; {says(MPICH)}")
    reader, writer = os.pipe()
    before = os.dup(0)
    try:
        os.dup2(reader, 0)
        assert isinstance(probe.probe_wrapper(candidate(mpicc)), Mpi)
    finally:
        os.dup2(before, 0)
        for each in (reader, writer, before):
            os.close(each)
    assert (tmp_path / "answer").read_text() == ""


def test_nothing_is_left_in_the_directory_for_temporary_files(tmp_path: Path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(module.tempfile, "tempdir", str(scratch))
    probe.probe_wrapper(candidate(install(tmp_path)))
    probe.probe_wrapper(candidate(script(tmp_path / "mpicc", "exit 1")))
    assert list(scratch.iterdir()) == []


def test_the_prefix_is_above_the_wrapper_unless_it_is_known(tmp_path: Path):
    assert candidate(tmp_path / "bin" / "mpicc").root == tmp_path
    assert candidate(tmp_path / "bin" / "mpicc", prefix=Path("/opt")).root == Path("/opt")


REFUSES = "env | grep -E '^(SLURM|PBS|LSB)_|^PE_HOST|BOOTSTRAP' && exit 9"
KEPT = {"PATH": "/usr/bin:/bin", "FI_PROVIDER": "tcp", "OMPI_MCA_btl": "self", "SLURMISH": "1"}


@pytest.fixture(autouse=True)
def in_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IN_A_JOB.items():
        monkeypatch.setenv(name, value)


def test_what_a_batch_system_tells_is_left_out_and_nothing_else():
    assert probe.strip_allocation(KEPT | IN_A_JOB) == KEPT


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(probe.PREFIXES), max_size=5),
    st.lists(st.sampled_from(probe.NAMES)),
    st.from_regex(r"[A-Z_]{1,9}", fullmatch=True),
)
def test_a_script_leaves_out_the_same(prefixes: list[str], names: list[str], end: str):
    told = KEPT | {f"{prefix}{end}": "x" for prefix in prefixes} | dict.fromkeys(names, "x")
    done = subprocess.run(
        ["bash", "-c", f"set -e; {probe.UNSET}; env -0"], env=told, capture_output=True, check=True, text=True
    )
    lines = dict(line.partition("=")[::2] for line in done.stdout.split("\0") if line)
    own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert lines.keys() - own == probe.strip_allocation(told).keys() - own


def test_an_mpi_is_probed_and_identified_without_it(tmp_path: Path):
    mpicc = install(tmp_path, starts=f"{REFUSES}\n{says(MPICH)}")
    assert isinstance(probe.probe_wrapper(probe.Candidate(mpicc, mpicc.with_name("mpiexec"), "path")), Mpi)
    (tmp_path / "program").write_text(f"#!/bin/sh\n{REFUSES}\nprintf '{MPICH}'")
    body = f'{COMPILES.rpartition(";")[0]}; cp {tmp_path}/program "$2"; chmod +x "$2"'
    mpicc = script(tmp_path / "other" / "mpicc", body)
    assert isinstance(probe.identify_wrapper(probe.Candidate(mpicc, mpicc, "path")), Mpi)


def test_imb_is_tried_without_it(tmp_path: Path):
    mpicc = install(tmp_path, starts=REFUSES + " || echo nothing of a job; exit 1")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.12").touch()
    words = (str(tmp_path), str(mpicc), str(mpicc.with_name("mpiexec")))
    mpi = Mpi("m", "mpich", "5.0.2", "MPICH", "path", *words)
    assert "exit code 9" not in try_imb(mpi, [tmp_path], print).problem


@pytest.mark.parametrize(
    ("launcher", "scheduler", "nodes", "told"),
    [
        (["/opt/mpich/bin/mpiexec"], "local", 1, False),
        ("mpirun", "local", 1, False),
        ("srun", "local", 1, True),  # it must find the job
        (["srun", "--mpi=pmi2"], "local", 1, True),
        (["mpiexec"], "local", 2, True),  # so must this, for the other node
        (["mpiexec"], "slurm", 1, True),  # in a job of its own
    ],
)
def test_launches_on_this_node_are_started_without_it(launcher, scheduler, nodes, told):
    place = partition(
        "cpu", topology=Topology(4, nodes=nodes), environments=["m"], scheduler=scheduler, prepare_cmds=["true"]
    )
    mpi = environment("m", family="mpich", library="MPICH 5", launcher=launcher)
    (system,) = site("s", description="", partitions=[place], environments=[mpi])["systems"]
    assert system["partitions"][0]["prepare_cmds"] == [*([] if told else [probe.UNSET]), "true"]


def found(*directories: Path | str) -> list[str]:
    """The wrappers on a search path of these directories."""
    return [str(each.mpicc) for each in probe.find_on_path(os.pathsep.join(map(str, directories)))]


def test_wrappers_are_found_with_their_launchers_in_the_order_of_the_path(tmp_path: Path):
    places = [install(tmp_path / name).parent for name in "ba"]
    expected = [probe.Candidate(place / "mpicc", place / "mpiexec", "path") for place in places]
    assert probe.find_on_path(os.pathsep.join(map(str, places))) == expected


def test_a_directory_that_is_on_the_path_twice_counts_once(tmp_path: Path):
    """As /bin, which is a link to /usr/bin today."""
    install(tmp_path / "usr")
    (tmp_path / "bin").symlink_to("usr/bin")
    paths = (tmp_path / "bin", tmp_path / "usr" / "bin", tmp_path / "bin" / "." / "..", tmp_path / "bin")
    assert found(*paths) == [f"{tmp_path}/usr/bin/mpicc"]


@pytest.mark.parametrize("entry", ["", "none", "file", "loop", "closed"])
def test_a_path_with_nonsense_in_it_is_searched_all_the_same(tmp_path: Path, entry: str):
    install(tmp_path / "mpi")
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    directory = tmp_path / entry if entry else ""
    assert found(directory, tmp_path / "mpi" / "bin") == [f"{tmp_path}/mpi/bin/mpicc"]


def test_only_what_can_be_run_is_a_wrapper(tmp_path: Path):
    bin_ = install(tmp_path).parent
    (bin_ / "mpicc.old").write_text("")
    (bin_ / "mpicc.gone").symlink_to("nothing")
    for other in ("mpiccx", "mpic++", "xmpicc", "mpicc_wrapper"):
        script(bin_ / other, "exit 0")
    assert found(bin_) == [f"{bin_}/mpicc"]


@pytest.mark.parametrize("chosen", ["openmpi", "mpich"])
def test_debians_two_mpis_are_two_and_the_plain_name_is_none(tmp_path: Path, chosen: str):
    bin_ = debian(tmp_path, chosen)
    assert probe.find_on_path(str(bin_)) == [
        probe.Candidate(bin_ / f"mpicc.{name}", bin_ / f"mpiexec.{name}", "debian")
        for name in ("mpich", "openmpi")
    ]


def test_alternatives_may_be_relative_links_and_lead_through_linked_directories(tmp_path: Path):
    bin_ = debian(tmp_path)
    (tmp_path / "bin").symlink_to("usr/bin")
    for directory, name, target in (
        (bin_, "mpicc", "../../etc/alternatives/mpicc"),
        (tmp_path / "etc" / "alternatives", "mpicc", "../../bin/mpicc.openmpi"),
    ):
        (directory / name).unlink()
        (directory / name).symlink_to(target)
    assert found(tmp_path / "bin") == [f"{bin_}/mpicc.mpich", f"{bin_}/mpicc.openmpi"]


def test_a_plain_name_that_is_an_mpi_of_its_own_stays(tmp_path: Path):
    bin_ = install(tmp_path).parent
    install(tmp_path, suffix=".mpich")
    assert found(bin_) == [f"{bin_}/mpicc", f"{bin_}/mpicc.mpich"]


def test_open_mpis_own_link_is_an_mpi(tmp_path: Path):
    bin_ = tmp_path / "bin"
    script(bin_ / "opal_wrapper", "exit 0")
    (bin_ / "mpicc").symlink_to("opal_wrapper")
    assert found(bin_) == [f"{bin_}/mpicc"]


def test_links_in_a_circle_end_the_search(tmp_path: Path):
    bin_ = install(tmp_path, suffix=".mpich").parent
    (bin_ / "a").symlink_to("b")
    (bin_ / "b").symlink_to("a")
    assert not probe.is_link_to(bin_ / "a", {bin_ / "mpicc.mpich"})


def test_the_launcher_has_the_suffix_of_the_wrapper():
    found = probe.find_companion_launcher(Path("/opt/mpicc-1/bin/mpicc"))
    assert found == Path("/opt/mpicc-1/bin/mpiexec")
    assert probe.find_companion_launcher(Path("/opt/intel/bin/mpiicx")) == Path("/opt/intel/bin/mpiexec")
    assert probe.find_companion_launcher(Path("/usr/bin/mpicc.mpich"), "mpirun") == Path(
        "/usr/bin/mpirun.mpich"
    )
    found = probe.find_companion_launcher(Path("/usr/bin/mpicc.openmpi"))
    assert found == Path("/usr/bin/mpiexec.openmpi")
