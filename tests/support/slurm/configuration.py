"""The files that Slurm's daemons read. Sockets are in ``/run``, which the cluster has of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = "plumbline"
HEAD = "head"  #: host name of the machine with the controller, on which commands run
MUNGE = "/run/munge"  #: directory of munged's socket, which is at its default place
DATABASE = "/run/mariadb"  #: directory of the database and its socket
#: Quick to notice a dead node and to kill a job; quick to schedule. A test may say otherwise.
SETTINGS = {
    "ClusterName": NAME,
    "SlurmctldHost": HEAD,
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1",
    "SlurmdParameters": "config_overrides",
    "ReturnToService": "2",
    "KillWait": "2",
    "SlurmdTimeout": "10",
    "MessageTimeout": "5",
    "OverTimeLimit": "0",
}
ACCOUNTING = {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": HEAD}

#: Named so that slurmd does not look for mounted control groups; nothing here uses them.
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


def node_names(nodes: int) -> list[str]:
    """``n1``, ``n2``, ..."""
    return [f"n{number}" for number in range(1, nodes + 1)]


def address(number: int) -> str:
    """The private address of the machine of this number."""
    return f"10.77.{number // 250}.{number % 250 + 1}"


def slurm_conf(
    directory: Path, nodes: Sequence[str], partitions: Mapping[str, str], settings: Mapping[str, str]
) -> str:
    """slurm.conf. State, logs and the jobs' temporary files are in the directory.

    :param nodes: name and shape of each.
    """
    paths = {
        "StateSaveLocation": directory / "state",
        "SlurmdSpoolDir": directory / "spool" / "%n",
        "TmpFS": directory / "tmp" / "%n",
        "TaskProlog": directory / "task_prolog",
        "SlurmctldLogFile": directory / "log" / "slurmctld.log",
        "SlurmdLogFile": directory / "log" / "slurmd.%n.log",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.%n.pid",
    }
    lines = [f"{key}={value}" for key, value in {**SETTINGS, **paths, **settings}.items()]
    lines += [f"NodeName={node}" for node in nodes]
    for number, (name, members) in enumerate(partitions.items()):
        default = "YES" if number == 0 else "NO"
        lines.append(f"PartitionName={name} Nodes={members} Default={default} MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"


def slurmdbd_conf(directory: Path) -> str:
    """slurmdbd.conf. The database is found by ``MYSQL_UNIX_PORT``; it listens on no network."""
    return (
        f"AuthType=auth/munge\nDbdHost={HEAD}\nSlurmUser=root\n"
        f"LogFile={directory / 'log' / 'slurmdbd.log'}\nPidFile=/run/slurmdbd.pid\n"
        "StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=root\nStorageLoc=slurm\n"
    )


def task_prolog(directory: Path) -> str:
    """What every task runs first: its temporary files go to its node's own directory."""
    return f"#!/bin/sh\necho export TMPDIR={directory}/tmp/$SLURMD_NODENAME\n"
