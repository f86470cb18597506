"""A real Slurm cluster on one machine: several nodes, up in a second, gone without a trace.

    with Cluster(directory, nodes=4, cores=2) as cluster:
        cluster.run("srun", "-N2", "hostname")                         # on the head node
        subprocess.run([...], env=os.environ | cluster.environment())  # here, with Slurm's commands

Each node is a machine of its own (see ``supervisor.py``): nothing but the network joins two of them. That
network leads nowhere else, so ports need not be free and two clusters do not meet.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from . import configuration as conf
from .availability import Unavailable, reason_not_here
from .machines import LIMIT, Machines, wait_until

#: Slurm's commands for users.
CLIENTS = ("sbatch", "scancel", "squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "srun", "salloc")


@dataclass
class Cluster(Machines):
    """The cluster, up within the ``with`` block: nodes ``n1``, ``n2``, ..., and ``head`` with the controller.

    :param cores: of each node, as Slurm is told; the machine's own cores are shared by all.
    :param partitions: name to nodes (``{"cpu": "n[1-3]", "big": "n4"}``); one of all nodes by default.
    :param settings: more lines of slurm.conf, or other values for those in ``configuration.SETTINGS``.
    :param stays: whether it stays when this process ends.
    :raises Unavailable: if there can be none on this machine.
    """

    nodes: int = 4
    cores: int = 2
    accounting: bool = False
    sockets: int = 1
    partitions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False

    def __enter__(self) -> Cluster:
        self.bring_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def names(self) -> list[str]:
        """The nodes' host names."""
        return conf.node_names(self.nodes)

    def environment(self) -> dict[str, str]:
        """What Slurm's commands need, on a machine and outside."""
        return {**super().environment(), "SLURM_CONF": str(self.directory / "slurm.conf")}

    def run(
        self, *words: str | Path, machine: str = conf.HEAD, check: bool = True, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine of the cluster to its end.

        :param check: whether a failure fails the test.
        """
        return self.complete(*words, machine=machine, check=check, **more)

    def queue(self) -> list[str]:
        """Every job that is not over: number, state and name."""
        return self.run("squeue", "--noheader", "--format=%i %T %j").stdout.splitlines()

    def state(self, node: str) -> str:
        """A node's state in Slurm's words, such as ``idle`` or ``down*``."""
        said = self.run("sinfo", "--noheader", "--nodes", node, "--format=%T").stdout
        return said.split()[0]

    def bring_up(self) -> None:
        if reason := reason_not_here(self.accounting):
            raise Unavailable(reason)
        self.directory = self.directory.absolute()
        addresses = {name: conf.address(i) for i, name in enumerate([conf.HEAD, *self.names])}
        try:
            self.write_files()
            self.start_machines(addresses, parent=0 if self.stays else os.getpid())
            self.give_outside(conf.HEAD, CLIENTS)
            self.start_daemons()
        except BaseException:
            self.stop()
            raise

    def write_files(self) -> None:
        """Everything that the daemons read."""
        home = self.directory
        for kind in ("spool", "tmp"):
            for node in self.names:
                (home / kind / node).mkdir(parents=True, exist_ok=True)
        for name in ("munge", "state"):
            (home / name).mkdir(exist_ok=True)
        files = {
            "slurm.conf": conf.slurm_conf(
                home,
                [f"{name} {self.shape}" for name in self.names],
                self.partitions or {"work": ",".join(self.names)},
                {**(conf.ACCOUNTING if self.accounting else {}), **self.settings},
            ),
            "cgroup.conf": conf.CGROUP_CONF,
            "task_prolog": conf.task_prolog(home),
            "slurmdbd.conf": conf.slurmdbd_conf(home),
        }
        for name, text in files.items():
            (home / name).write_text(text)
        (home / "task_prolog").chmod(0o755)
        (home / "slurmdbd.conf").chmod(0o600)
        key = home / "munge" / "key"
        key.unlink(missing_ok=True)
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)

    @property
    def shape(self) -> str:
        """A node in the words of slurm.conf."""
        each = f"Sockets={self.sockets} CoresPerSocket={self.cores // self.sockets}"
        return f"CPUs={self.cores} {each} ThreadsPerCore=1 RealMemory=2000"

    def start_daemons(self) -> None:
        """Start Slurm, and wait until every node is ready for jobs."""
        home = self.directory
        self.run("install", "-d", conf.MUNGE, conf.DATABASE)
        files = [f"--key-file={home / 'munge' / 'key'}", f"--log-file={home / 'log' / 'munged.log'}"]
        files += ["--pid-file=/run/munged.pid", "--seed-file=/run/munged.seed"]
        self.run("munged", "--force", "--num-threads=10", *files)
        if self.accounting:
            self.start_accounting()
        self.start_controller()
        starting = [self.start("slurmd", "-N", name, machine=name) for name in self.names]
        for daemon in starting:
            _, errors = daemon.communicate(timeout=LIMIT)
            if daemon.returncode != 0:
                raise RuntimeError(f"slurmd does not start: {errors}")
        wait_until("every node to be idle", self.all_idle)

    def start_controller(self) -> None:
        """Start the scheduler; a second time it comes back with what it knew."""
        self.run("slurmctld")
        ping = partial(self.run, "scontrol", "ping", check=False)
        wait_until("the controller", lambda: ping().returncode == 0)

    def start_accounting(self) -> None:
        """Start a private database and slurmdbd."""
        data, socket = f"--datadir={conf.DATABASE}", f"--socket={conf.DATABASE}/socket"
        plain = "--auth-root-authentication-method=normal"
        install = ["mariadb-install-db", "--no-defaults", data, plain, "--skip-test-db"]
        self.run(*install, "--user=root")
        log = f"--log-error={self.directory / 'log' / 'mariadb.log'}"
        daemon = [*("mariadbd", "--no-defaults", "--user=root", data, socket, "--skip-networking", log)]
        self.run("sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *daemon)
        ask = ["mariadb", "--no-defaults", socket, "-e", "select 1"]
        wait_until("the database", lambda: self.run(*ask, check=False).returncode == 0)
        self.run("slurmdbd", env={**os.environ, "MYSQL_UNIX_PORT": f"{conf.DATABASE}/socket"})
        add = ["sacctmgr", "--immediate", "add", "cluster", conf.NAME]
        wait_until("slurmdbd", lambda: self.run(*add, check=False).returncode == 0)

    def all_idle(self) -> bool:
        """Whether Slurm says that every node is idle."""
        said = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False).stdout.split()
        return bool(said) and set(said) == {"idle"}
