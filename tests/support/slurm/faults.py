"""What can happen to a cluster, planted: nodes that die or are slow, a scheduler that is away."""

import os
from contextlib import suppress
from pathlib import Path

from .availability import Unavailable
from .cluster import Cluster
from .machines import wait_until

CONTROL_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD, QUOTA = "cpu.cfs_period_us", "cpu.cfs_quota_us"
GROUP = "plumbline-cluster"
LEAST_QUOTA = 1000  #: microseconds; the kernel takes no less


def power_off(cluster: Cluster, node: str) -> None:
    """Everything on a node dies at once, and nothing answers for it, not even to refuse a connection."""
    cluster.run("sh", "-c", "ip link set eth0 down; kill -9 -1", machine=node, check=False)


def power_on(cluster: Cluster, node: str) -> None:
    """Start the daemon of a node that was off, and have it used again."""
    cluster.run("ip", "link", "set", "eth0", "up", machine=node)
    cluster.run("slurmd", "-N", node, machine=node)
    wait_until(f"{node} to be idle", lambda: cluster.state(node) == "idle")


def stop_controller(cluster: Cluster) -> None:
    """The scheduler goes away; jobs that run go on. ``cluster.start_controller()`` brings it back."""
    process = cluster.run("cat", "/run/slurmctld.pid").stdout.strip()
    cluster.run("kill", process)
    gone = ["sh", "-c", f"! kill -0 {process} 2>/dev/null"]
    wait_until("the controller to end", lambda: not cluster.run(*gone, check=False).returncode)


def slow_down(cluster: Cluster, node: str, share: float) -> Path:
    """Leave a node this share of one processor's time: above 0; 1 or more takes the limit away.

    :returns: the node's control group.
    :raises Unavailable: if control groups cannot be used here.
    """
    if not (CONTROL_GROUPS / QUOTA).exists() or not os.access(CONTROL_GROUPS, os.W_OK):
        reason = f"{CONTROL_GROUPS} has no {QUOTA} (control groups version 1) that can be written"
        raise Unavailable(f"no sick node: {reason}")
    for old in CONTROL_GROUPS.glob(f"{GROUP}-*"):
        with suppress(OSError):  # one that is in use stays
            old.rmdir()
    group = CONTROL_GROUPS / f"{GROUP}-{cluster.processes[node]}"
    group.mkdir(exist_ok=True)
    with (cluster.directory / "control_groups").open("a") as record:
        record.write(f"{group}\n")  # which the supervisor removes
    # As short a period as the kernel takes, so that single messages feel it and not only long runs.
    (group / PERIOD).write_text(str(int(LEAST_QUOTA / min(share, 1))))
    (group / QUOTA).write_text(str(LEAST_QUOTA) if share < 1 else "-1")
    for process in cluster.processes_on(node):
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(process))
    return group
