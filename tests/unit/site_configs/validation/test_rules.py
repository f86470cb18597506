"""All that is wrong with a site file is told at once: the line, the key and the fix."""

from pathlib import Path

import pytest

from site_configs import common
from site_configs.topology import layouts
from site_configs.validation.reader import Reader
from site_configs.validation.reading import SiteReading
from site_configs.validation.rules import find_site_faults, is_whole_version
from tests.support.factories.scheduler import CRAY, GROWN
from tests.support.factories.site import MPICH, OPENMPI, PLAIN, slurm, text_of
from tests.support.paths import ROOT

SITE = text_of(slurm(CRAY, OPENMPI, MPICH))
HEAD = """\
from site_configs.common import Topology, environment, partition, site
"""


def read(path: Path, text: str) -> SiteReading:
    """What is found in a site file."""
    path.write_text(text, errors="surrogateescape")
    return Reader(path).read()


@pytest.fixture
def told(tmp_path: Path):
    """The faults of a site file as lines of text."""

    def of(text: str) -> list[str]:
        return [f"{fault.line}: {fault.text}" for fault in find_site_faults(read(tmp_path / "mine.py", text))]

    return of


def line_of(text: str, part: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if part in line)


@pytest.mark.parametrize("text", [SITE, text_of(PLAIN), text_of(slurm(GROWN, MPICH))])
def test_what_site_new_writes_is_well(told, text: str):
    assert told(text) == []


PART = "partition 'standard': "
MPI = "environment 'mpich-5_0_2': "
CORES = "cores_per_node=128"
FAMILY = 'family="mpich"'
LIBRARY = 'library="MPICH Version: 5.0.2"'
LMOD = 'modules_system="lmod"'
JOBS = "max_jobs=1,"
HERE = "site 'mine': "
NAMES = 'entry["name"] for entry in environments'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (CORES, "cores_per_nod=128", "Topology: cores_per_nod: is not known; did you mean cores_p"),
        (CORES, "cores_per_node=0", "Topology: cores_per_node: 0: write a whole number, 1 or more"),
        (CORES, "cores_per_node=127", PART + "topology: cores_per_node=127 is not divisible by s"),
        ("access=", "acces=", PART + "acces: is not known; did you mean access?"),
        ("access=[", "access='--exclusive' or [", PART + "access: write a list: ['--exclusive']"),
        (FAMILY, 'famly="mpich"', MPI + "famly: is not known; did you mean family?"),
        (FAMILY, 'family="openmpi"', MPI + "family: 'openmpi', but library="),
        (LIBRARY, 'library=""', MPI + "library: '': write name and version"),
        (LIBRARY + ",", "", MPI + "library: is missing"),
        ("=slurm.SCHEDULER", "='slrum'", PART + "scheduler: ReFrame knows no 'slrum'; did you mea"),
        ("=slurm.SCHEDULER", "='flux'", PART + "scheduler: 'flux' cannot be used here: "),
        ("=slurm.SRUN_PMI2", "='srunn'", MPI + "launcher: ReFrame knows no 'srunn'; did you mean"),
        (NAMES, "'mpich-5_0'", PART + "environments: 'mpich-5_0' is not declared; did you mean m"),
        ('"openmpi-5_0_3"', '"mpich-5_0_2"', MPI + "name: is there twice; give each its own"),
        (LMOD, 'modules_system="lmodd"', HERE + "modules_system: 'lmodd': write one of envmod, lmod"),
        (LMOD, 'module_system="lmod"', HERE + "module_system: is not known; did you mean modules_"),
        (JOBS, "layouts=[[1024, 128]],", PART + "layouts: [1024, 128] does not fit on 4 nodes of"),
        (JOBS, 'defaults={"trails": 3},', PART + "defaults: 'trails': write one of"),
        (JOBS, "exact=True,", PART + "exact: times of 'openmpi-5_0_3' (openmpi) do not repeat"),
    ],
)
def test_each_fault_is_a_line_that_names_key_and_fix(told, old: str, new: str, said: str):
    assert old in SITE
    lines = told(SITE.replace(old, new))
    assert any(line.partition(": ")[2].startswith(said) for line in lines), lines
    assert all(int(line.partition(":")[0]) > 0 for line in lines)


def test_all_faults_come_at_once_and_each_has_its_line(told):
    text = SITE.replace("famil", "famly").replace("access=", "acces=").replace("sockets_per_node", "socket")
    text = text.replace("nodes=4", "nodes=0")
    lines = told(text)
    where = [line_of(text, "environment("), line_of(text, "partition(")]
    assert len(lines) == 5
    for part, line in zip(("famlyy: ", "acces: "), where, strict=True):
        assert any(each.startswith(f"{line}: ") and part in each for each in lines)


def test_a_family_that_is_not_that_of_its_library_has_its_fix(told):
    (line,) = told(SITE.replace(FAMILY, 'family="mpch"', 1))
    assert line.endswith("is that of mpich; write 'mpich', or what that library says of itself")


def test_one_wrong_word_is_one_fault(told):
    """No second one of what the call would have made."""
    assert len(told(SITE.replace("cores_per_node=128", "cores_per_node=0"))) == 1
    assert len(told(SITE.replace('family="mpich"', 'famly="mpich"'))) == 1


def test_an_environment_that_no_partition_names_is_told(told):
    text = SITE.replace('[entry["name"] for entry in environments]', '["mpich-5_0_2"]')
    (line,) = told(text)
    assert "environment 'openmpi-5_0_3': name: no partition names it" in line


def test_a_local_partition_is_one_node_of_which_a_part_may_be_lent(told):
    (line,) = told(text_of(PLAIN).replace("nodes=1", "nodes=2"))
    assert "nodes=2: scheduler 'local' has one node; write 1" in line
    assert told(text_of(PLAIN).replace("cores_per_node=16", "cores_per_node=15")) == []


@pytest.mark.parametrize(
    ("one", "two", "well"),
    [
        ("Open MPI v5.0", "Open MPI v5.0.3", False),
        ("Open MPI v5.0", "Open MPI v5.0", False),
        ("Open  MPI v5", "Open MPI v5.0.3", False),
        ("Open MPI v5.0.3", "Open MPI v5.0.3", True),  # one release, built twice
        ("Open MPI v5.0.3", "Open MPI v5.0.4", True),
    ],
)
def test_libraries_that_would_pass_as_each_other(told, one: str, two: str, well: bool):
    second = f'''
environments.append(
    environment("other", family="openmpi", library="{two}", modules=["other/5"], launcher=["mpirun"])
)
'''
    text = SITE.replace("Open MPI v5.0.3", one).replace("\nsite_configuration", f"{second}\nsite_configuration")
    lines = told(text)
    assert (lines == []) == well, lines
    assert well or "environment 'other': library: " in lines[0]


def test_one_installation_may_be_two_environments_and_a_path_is_proof_enough(told):
    for place in ('modules=["openmpi/5.0.3"]', 'mpicc="/a/mpicc"'):
        text = SITE.replace("Open MPI v5.0.3", "Open MPI v5.0")
        if "mpicc" in place:
            text = text.replace('modules=["openmpi/5.0.3"],\n        mpicc="mpicc"', 'mpicc="/b/mpicc"')
        same = f'family="openmpi", library="Open MPI v5.0", {place}, launcher=["mpirun"]'
        more = f'environments.append(environment("b", {same}))\n'
        assert told(text.replace("\nsite_configuration", f"{more}\nsite_configuration")) == []


@pytest.mark.parametrize(
    ("library", "whole"),
    [("Open MPI v5.0.3", True), ("Open MPI v5.0", False), ("Intel(R) MPI Library 2021.9", True), ("x", False)],
)
def test_whole_versions(library: str, whole: bool):
    assert is_whole_version(library) == whole


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0: site_configuration: is missing; set it to what site(...) returns"),
        ("site_configuration = 7", "0: site_configuration: is missing"),
        ('site_configuration = {"systems": []}', "0: site_configuration: is a configuration of ReFrame's own"),
        ("x = (", "1: is not Python: '(' was never closed"),
        ("\n1 / 0", "2: ZeroDivisionError: division by zero"),
        ("import nothing_such", "1: ModuleNotFoundError: No module named 'nothing_such'"),
        ("raise SystemExit(3)", "1: SystemExit: 3"),
        ("def f():\n    raise KeyError('a')\n\nf()", "2: KeyError: 'a'"),
        (HEAD + "site()", "2: site: name: is missing"),
        (HEAD + 'site_configuration = site("a", description="b", partitions=[{"name": "x"}], environments=[])',
         "2: site 'a': partitions: make each with partition(...)"),
        (HEAD + 'site_configuration = site("a", description="b", partitions=7, environments=None)',
         "2: site 'a': partitions: write a list: [7]"),
        (HEAD + 'site_configuration = site("a", description="b", partitions=[], environments=[])',
         "0: site: partitions: there is none; nothing could run"),
        ("\udcff", "is not Python"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_site_is_a_fault(told, text: str, said: str):
    assert any(line.startswith(said) or said in line for line in told(text)), told(text)


def test_a_plain_configuration_has_the_command_that_tries_it(tmp_path: Path):
    path = tmp_path / "my site.py"
    path.write_text('site_configuration = {"systems": []}')
    (fault,) = Reader(path).read().faults
    assert f"reframe -C '{path}' -c {ROOT}/reframe_checks --dry-run" in fault.text


CHANGED = "was changed after it was made; write it as an argument"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("systems[0]['partitions'][0]['extras']['nodes'] = 'x'", "systems[0].partitions[0].extras.nodes"),
        ("systems[0]['partitions'][0]['extras'].pop('nodes')", "systems[0].partitions[0].extras.nodes"),
        ("environments[0]['extras']['library'] = ''", "environments[0].extras.library"),
        ("systems.append(dict(systems[0], name='other'))", "systems"),
        ("systems[0]['descr'] = None", "systems[0].descr"),
    ],
)  # fmt: skip
def test_what_is_changed_after_it_was_made_is_a_fault(told, change: str, said: str):
    """No piece has looked at it: a library that is empty would accept every MPI."""
    start = "systems, environments = (site_configuration[key] for key in ('systems', 'environments'))"
    assert told(f"{SITE}\n{start}\n{change}\n") == [f"0: site_configuration: {said}: {CHANGED}"]


def test_what_is_changed_before_the_site_is_made_is_a_fault(told):
    change = "environments[0]['extras'].clear()"
    lines = told(SITE.replace("\nsite_configuration", f"{change}\n\nsite_configuration"))
    said = [line.partition(": ")[2] for line in lines]
    assert f"environment 'openmpi-5_0_3': extras.library: {CHANGED}" in said


def test_a_key_that_is_added_is_no_fault(told):
    """A site may tell the checks more than the pieces do."""
    change = "environments[0]['extras']['proof'] = 'x'"
    assert told(SITE.replace("\nsite_configuration", f"{change}\n\nsite_configuration")) == []


def test_simulated_time_is_exact(told):
    text = SITE.replace(JOBS, "exact=True,")
    text = text.replace('"openmpi"', '"simgrid"').replace('"mpich"', '"simgrid"')
    assert not [line for line in told(text) if "exact" in line]


def test_reading_leaves_the_pieces_as_they_were(told):
    before = (common.environment, common.partition, common.site, layouts.Topology)
    told("1 / 0")
    assert (common.environment, common.partition, common.site, layouts.Topology) == before
