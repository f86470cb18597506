"""Two delivered clusters beside what a bidder measured on two nodes: a healthy one, and one with a slow node.

Usage: ``python -m tests.statistical.delivered_clusters DIRECTORY [--factor TIMES]``, as root, on a machine with
Slurm. It takes some ten minutes on two idle cores. DIRECTORY gets the cluster, the offer and both acceptances.

The kernel slows what one node sends: nothing is loaded in front of the MPI, so no run rule is broken.

Each row is committed to ``--factor`` times the slowest launch on two nodes. All nodes share the cores of one
machine: what two of them promise, four cannot keep. A healthy cluster was accepted once with a factor of 6, and
refused by a later run with 3. So the default is 60: far beyond what shared cores take, and far below what the
slow node takes.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

from postprocess.extensions.procurement.commitments import Commitment, write_commitments
from postprocess.extensions.procurement.offer import RULES, TELL, open_offer
from postprocess.extensions.procurement.rules.rules import hash_rules
from site_configs.common import work_directory
from site_configs.mpi import inventory
from tests.support.slurm.cluster import Cluster
from tests.support.slurm.login import HeadNode
from tests.support.slurm.site import write_site

SICK = "n3"
#: Of the slow node, in the words of tc(8): what it may send.
RATE = ("rate", "20mbit", "burst", "10kb", "latency", "2s")
FACTOR = 60.0  #: times the slowest launch: what is committed
FAMILY = "openmpi"  #: whose processes let each other run
RULES_TEXT = """\
schema = 1
title = "a cluster of four nodes, offered on two"
launches = 3
tolerance = 0.05
tell = ["offeror"]
cache = "warm"
[iterations]
mpicost = 15
[risk]
most_launches = 6
[links]
slower = 0.5
[category.baseline]
text = "as it is"
[[case]]
name = "neighbours"
program = "mpicost"
routine = "pingpong"
bytes = [8, 100000]
nodes = "nearest pair"
per_node = "one"
[[case]]
name = "everybody"
program = "mpicost"
routine = "allgather"
bytes = [100000]
nodes = "all"
per_node = "one"
"""


def prepare_offer(head: HeadNode, folder: Path, rules: Path, site: Path, factor: float) -> Path:
    """Measure on two nodes, commit to so many times the slowest launch, and seal. Returns the archive."""
    show(head, "offer", "run", rules, "--site", site, "--output", folder)
    told = (folder / TELL).read_text().replace('offeror = ""', 'offeror = "Acme"')
    (folder / TELL).write_text(told)
    committed = [
        Commitment(row.key.key, factor * max(row.values), model="more nodes, shared cores")
        for row in open_offer(folder).rows
    ]
    write_commitments(folder, hash_rules(folder / RULES), committed)
    key = folder.with_name("key")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    show(head, "offer", "seal", folder, "--key", key)
    return folder.with_name(f"{folder.name}.tar")


def show(head: HeadNode, *words: str | Path) -> int:
    """Run a command on the head node, show what it says, and return its exit status."""
    process = head.start(*map(str, words))
    output, errors = process.communicate()
    print(f"$ ./plumbline {' '.join(map(str, words))}\n{output}{errors}exit status {process.returncode}")
    return process.returncode


def accept(head: HeadNode, archive: Path, site: Path, folder: Path) -> None:
    """Accept what was delivered, verify the acceptance, and print its rows."""
    key = archive.with_name("key")
    show(head, "accept", archive, "--site", site, "--output", folder, "--key", key)
    show(head, "offer", "check", folder.with_name(f"{folder.name}.tar"))
    page = json.loads((folder / "acceptance.json").read_text())
    for row in page["rows"]:
        print(f"{folder.name}: {row['row']}: {row['verdict']} after {row['launches']} launches")
    links = page["links"]
    print(f"{folder.name}: links: {links['verdict']}: {'; '.join(links['slow']) or 'nothing is slow'}")


def main(directory: Path, factor: float) -> None:
    """Offer, deliver a healthy cluster, then one with a slow node."""
    directory.mkdir(parents=True, exist_ok=True)
    shared = directory / "shared"
    shared.mkdir(exist_ok=True)
    os.environ.setdefault("PLUMBLINE_TESTS_SHARED", str(shared))  # what is compiled once for all
    rules = directory / "rules.toml"
    rules.write_text(RULES_TEXT)
    with Cluster(directory / "cluster", nodes=4, cores=2) as cluster:
        mpis = [mpi for mpi in inventory.load_inventory(work_directory()).mpis if mpi.family == FAMILY]
        head = HeadNode(directory / "home", cluster=cluster)
        bidder = write_site(directory / "bidder.py", cluster, mpis, nodes=2)
        delivered = write_site(directory / "delivered.py", cluster, mpis)
        archive = prepare_offer(head, directory / "offer", rules, bidder, factor)
        accept(head, archive, delivered, directory / "healthy")
        cluster.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *RATE, machine=SICK)
        accept(head, archive, delivered, directory / "slow")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--factor", type=float, default=FACTOR, metavar="TIMES")
    told = parser.parse_args()
    main(told.directory.absolute(), told.factor)
