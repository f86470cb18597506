"""The site files that come with Plumbline: each is well, and a night on it is as many cases as it says here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands import site_check
from site_configs.common import work_directory
from site_configs.mpi import inventory
from site_configs.validation.site_files import list_site_names
from tests.support.paths import ROOT
from tests.support.simgrid import NO_SIMGRID

#: Cases and launches of a night on a machine that is not this one.
NIGHTS = {
    "slurm_cluster": (7632, 104),
    "pbs_cluster": (5796, 104),
    "cray_cluster": (6930, 64),
    "simulated": (3234, 78),
}
NIGHT = re.compile(r"a night is ([\d,]+) cases in ([\d,]+) launch")
HOURS = re.compile(r"about .* and \d+\.\d\d node-hours")


def night(work: WorkDirectory, name: str, progress: Progress) -> tuple[int, int]:
    """Cases and launches of a night on a site, which must be well."""
    status = site_check.check_site(work, name, progress)
    text = " ".join(progress.console.file.getvalue().split())
    assert status == 0, text
    assert HOURS.search(text)
    cases, launches = NIGHT.search(text).groups()
    return int(cases.replace(",", "")), int(launches.replace(",", ""))


@pytest.mark.long
@pytest.mark.parametrize("name", NIGHTS)
def test_a_night_has_this_many_cases(name: str, tmp_path: Path, progress: Progress):
    if name == "simulated" and not shutil.which("smpirun"):
        pytest.skip(NO_SIMGRID)
    work = WorkDirectory(tmp_path / "home", ROOT)
    assert night(work, name, progress) == NIGHTS[name]
    assert not any(work.sessions.iterdir())


@pytest.mark.machine
def test_a_night_on_this_machine_is_as_many_cases_with_every_mpi(tmp_path, progress):
    found = inventory.load_inventory(work_directory())
    work = WorkDirectory(tmp_path / "home", ROOT)
    work.root.mkdir()
    shutil.copy(inventory.inventory_file(work_directory()), work.root)
    cases, launches = night(work, "local", progress)
    number = len(found.mpis)  # each has mpicost; IMB is there for some, as a wheel
    assert (cases - 48 * number, launches - number) >= (0, 0)
    assert "OSU and IMB that Spack builds" in " ".join(progress.console.file.getvalue().split())


def test_no_site_that_comes_with_plumbline_is_left_out():
    listed = subprocess.run(
        ["git", "ls-files", "site_configs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("no git here: which sites come with Plumbline is not known")
    own = {Path(line).stem for line in listed.stdout.splitlines()} & set(list_site_names(ROOT))
    assert own <= {*NIGHTS, "local"}
    assert {*NIGHTS, "local"} <= set(list_site_names(ROOT))
