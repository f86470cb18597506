"""A cluster with PBS, from what its commands print to a site file that is well. PBS itself is not here."""

import platform
import re
from functools import partial

from postprocess.base.workdir import WorkDirectory
from postprocess.commands import site_check
from site_configs.common import work_directory
from site_configs.generate import write
from site_configs.mpi import login_node
from site_configs.schedulers import registry
from tests.support.factories.scheduler import PBS, answering
from tests.support.paths import ROOT

MARKED = "sockets_per_node=0,"


def test_a_cluster_with_pbs_from_its_commands_to_a_dry_run(progress, tmp_path, monkeypatch):
    work, path = WorkDirectory(tmp_path / "home", ROOT), tmp_path / "pbs.py"
    (mpis := work.root / "mpi").mkdir(parents=True)
    for folder in (work_directory() / "mpi").glob("mpich-*"):
        (mpis / folder.name).symlink_to(folder)  # of one MPI, each case of a night once
    look = partial(registry.detect_scheduler, answering(PBS), "pbsnodes".__eq__)
    monkeypatch.setattr(registry, "detect_scheduler", look)
    monkeypatch.setattr(login_node, "find_on_path", lambda _: [])
    assert write.write_new_site(work, "mine", path, None, ["mpich"], lambda: None, progress) == 0
    text = path.read_text()

    assert site_check.check_site(work, str(path), progress) == 1  # what was not told is not forgotten
    said = progress.console.file.getvalue()
    numbers = [n for n, line in enumerate(text.splitlines(), 1) if MARKED in line]
    assert len(numbers) == 2
    for number in numbers:
        assert re.search(rf"^  line {number}: {MARKED}", said, re.M)
    assert " ".join(said.split()).count("sockets_per_node: 0: write a whole number, 1 or more") == 2

    path.write_text(text.replace(MARKED, "sockets_per_node=2,"))
    assert site_check.check_site(work, str(path), progress) == 0, progress.console.file.getvalue()
    said = progress.console.file.getvalue().removeprefix(said)
    assert platform.node() not in said  # the file is this host's, so PBS was asked
    # On four nodes of each kind, and with as many cores as PBS counts CPUs.
    told = re.search(r"a night is 14,754 cases in (\d+) launches: ", said)
    assert told and 35 < int(told[1]) <= 5 * 35  # those of mpicost five times
