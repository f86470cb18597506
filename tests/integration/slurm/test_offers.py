"""An offer of two nodes, and a delivered cluster of four, one of which is slow: real jobs, real MPI."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from postprocess.analyses.offer.check_offer import open_offer
from postprocess.analyses.offer.commitments import Commitment, write_commitments
from postprocess.analyses.offer.data import RULES
from postprocess.analyses.offer.rules_data import hash_rules
from site_configs.common import work_directory
from site_configs.mpi import inventory
from tests.support.plumbline_runner import Ended
from tests.support.slurm import cluster_or_skip
from tests.support.slurm.login import HeadNode
from tests.support.slurm.site import write_site

SICK = "n3"
STOPPED, RUNNING = 0.04, 0.02  #: seconds in turn of the processes of the sick node
LOOKED = 20  #: turns after which its processes are looked for again
GENEROUS = 5.0  #: times the slowest launch that is committed: cores are shared here
RULES_TEXT = """\
schema = 1
title = "the cluster of the tests"
launches = 3
tolerance = 0.05
tell = ["offeror"]
cache = "warm"
[iterations]
mpicost = 51
[risk]
most_launches = 3
[category.baseline]
text = "as it is"
[[case]]
name = "all"
program = "mpicost"
routine = "bcast"
bytes = [8]
nodes = "all"
per_node = "one"
"""


@contextmanager
def slowed(node: str) -> Iterator[None]:
    """Stop the programs of a node again and again: nothing is loaded in front of an MPI."""
    done = threading.Event()

    def stop_and_go() -> None:
        own: list[int] = []
        for turn in count():
            if done.wait(RUNNING):
                return
            if turn % LOOKED == 0:
                own = [
                    pid
                    for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                    if is_on(pid, node)
                ]
            for number, seconds in ((signal.SIGSTOP, STOPPED), (signal.SIGCONT, 0.0)):
                for pid in own:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                time.sleep(seconds)

    worker = threading.Thread(target=stop_and_go)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()


def is_on(pid: int, node: str) -> bool:
    """Whether a process is mpicost on a node."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        return (
            name == "mpicost"
            and f"SLURMD_NODENAME={node}\0" in Path(f"/proc/{pid}/environ").read_text()
        )
    except OSError:
        return False


def good(ended: Ended) -> Ended:
    assert ended.status == 0, ended.output + ended.errors
    return ended


def test_a_slow_node_of_the_delivered_cluster_misses_what_two_nodes_promised(
    tmp_path: Path,
) -> None:
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen")
    with cluster_or_skip(tmp_path / "cluster", nodes=4, cores=2) as cluster:
        known = {mpi.family: mpi for mpi in inventory.load_inventory(work_directory()).mpis}
        head = HeadNode(tmp_path / "home", cluster=cluster)
        bidder = write_site(tmp_path / "bidder.py", cluster, [known["openmpi"]], nodes=2)
        delivered = write_site(tmp_path / "delivered.py", cluster, [known["openmpi"]])
        rules, offer = tmp_path / "rules.toml", tmp_path / "offer"
        rules.write_text(RULES_TEXT)
        head.run("offer", "run", str(rules), "--site", str(bidder), "--output", str(offer))
        told = (offer / "offer.toml").read_text().replace('offeror = ""', 'offeror = "Acme"')
        (offer / "offer.toml").write_text(told)
        (row,) = open_offer(offer).rows
        assert (row.layout, len(row.values)) == ("2x1", 3)
        own = [Commitment(row.key.key, GENEROUS * max(row.values))]
        write_commitments(offer, hash_rules(offer / RULES), own)
        key = tmp_path / "ann"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        good(head.run("offer", "seal", str(offer), "--key", str(key)))
        words = ("accept", f"{offer}.tar", "--site", str(delivered), "--output")
        with slowed(SICK):
            ended = head.run(*words, str(tmp_path / "sick"), "--key", str(key))
        assert ended.status == 1, ended.output + ended.errors
        page = json.loads((tmp_path / "sick" / "acceptance.json").read_text())
        (judged,) = page["rows"]
        assert (judged["verdict"], judged["launches"], page["violations"]) == ("missed", 3, [])
        (again,) = open_offer(tmp_path / "sick" / "measured").rows
        assert again.layout == "4x1"
        assert head.run("offer", "check", str(tmp_path / "sick.tar")).status == 1
