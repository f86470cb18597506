"""Whether a Slurm cluster can be had here, and if not, why: one reason that a skipped test gives."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

#: Programs and the Debian package of each.
PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm"}
PROGRAMS |= {"munged": "munge", "unshare": "util-linux", "nsenter": "util-linux"}
PROGRAMS |= {"setpriv": "util-linux", "ip": "iproute2"}
ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server-core"}
#: A machine of the cluster in small: every name space, and both ends of a cable.
TRIAL = "mount -t tmpfs tmpfs /mnt && ip link add a1 type bridge && ip link add a2 type veth peer name a3"
TIMEOUT = 20  #: seconds for the trial


class Unavailable(Exception):
    """There can be no cluster here. The text says why, and what would help."""


def search_path() -> str:
    """The search path on which daemons are found too: not everybody has ``sbin`` where ``bin`` is."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    daemons = [str(Path(folder).with_name("sbin")) for folder in folders if Path(folder).name == "bin"]
    return os.pathsep.join(dict.fromkeys([*folders, *daemons]))


def reason_not_here(accounting: bool = False) -> str:
    """Why there can be no cluster on this machine; empty if there can."""
    programs = PROGRAMS | (ACCOUNTING if accounting else {})
    missing = [name for name in programs if not shutil.which(name, path=search_path())]
    if missing:
        packages = " ".join(sorted({programs[name] for name in missing}))
        return f"no Slurm cluster: {missing[0]} is not installed (Debian: apt-get install {packages})"
    if os.geteuid() != 0:
        return "no Slurm cluster: its private network needs root"
    return forbidden()


@cache
def forbidden() -> str:
    """Why root may not make private networks and mounts here (some containers); empty if it may."""
    words = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    try:
        tried = subprocess.run(
            [*words, "--mount-proc", "sh", "-c", TRIAL],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env={**os.environ, "PATH": search_path()},
        )
    except subprocess.TimeoutExpired:
        return f"no Slurm cluster: unshare did not end within {TIMEOUT} s"
    said = " ".join(tried.stderr.split()) or f"exit code {tried.returncode}"
    return f"no Slurm cluster: private name spaces are forbidden here: {said}" if tried.returncode else ""
