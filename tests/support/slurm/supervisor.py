"""The process that holds a cluster's machines: when it ends, however it ends, all of them are gone.

A machine is a set of name spaces of its own (processes, network, host name, mounts, shared memory) with
a shell as process 1. All hang on one bridge, in a network name space that has no way out. Whatever runs on a
machine dies with its process 1, and that dies with this process; the kernel takes mounts, network and
shared memory with it. Nothing that is not in the cluster's directory exists outside these name spaces.

A program of its own, standard library only: ``supervisor.py DIRECTORY``. It reads ``layout.json`` (host
name to address, and whether to end with the process that started it), writes one line of JSON (host
name to process number of its process 1, as the outside sees it), and waits for SIGTERM.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)
#: Mount, host name, IPC, network
NEW_NAME_SPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
BRIDGE = "nodes"
ISOLATED = [*("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")]
ISOLATED += ["--mount", "--net", "--uts", "--ipc"]
#: Process 1 of a machine: tells that its name spaces are there, takes its name, and collects orphans.
PROCESS_1 = """
hostname "$1" && mount -t tmpfs tmpfs /dev/shm && mount -t sysfs sysfs /sys && echo ready
while :; do sleep 3600 & wait $!; done
"""


def run(*words: str, text: str = "") -> None:
    """Run a command. Its complaint is the end of this program."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {' '.join(done.stderr.split())}")


def separate(directory: Path) -> None:
    """Leave this machine's network and mounts, and make those that the cluster's machines share."""
    if LIBC.unshare(NEW_NAME_SPACES) != 0:
        raise SystemExit(f"unshare: {os.strerror(ctypes.get_errno())}")
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")  # sockets: their paths must be short
    run("mount", "--bind", str(directory / "hosts"), "/etc/hosts")
    # Programs of the outside that enter the cluster are not for those that are in it.
    run("mount", "-t", "tmpfs", "tmpfs", str(directory / "bin"))
    run("ip", "-batch", "-", text=f"link add {BRIDGE} type bridge\nlink set {BRIDGE} up\n")


def start_machine(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *ISOLATED, "sh", "-c", PROCESS_1, "sh", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def process_1(machine: subprocess.Popen[str]) -> int:
    """The number of a machine's process 1, once its name spaces are there."""
    if machine.stdout is None or machine.stdout.readline() != "ready\n":
        raise SystemExit("unshare: a machine did not start")
    return int(Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text())


def connect(number: int, address: str, process: int) -> None:
    """Plug a machine into the bridge."""
    cable = f"link add v{number} type veth peer name eth0 netns {process}\n"
    run("ip", "-batch", "-", text=f"{cable}link set v{number} master {BRIDGE} up\n")
    inside = f"link set lo up\naddr add {address}/16 dev eth0\nlink set eth0 up\n"
    run("nsenter", "-t", str(process), "-n", "ip", "-batch", "-", text=inside)


def remove_quotas(directory: Path) -> None:
    """Remove the control groups that slowed machines down; their processes have ended."""
    record = directory / "control_groups"
    for group in record.read_text().split() if record.exists() else ():
        with suppress(OSError):
            Path(group).rmdir()


def main() -> None:
    """Hold the machines until told to let go."""
    directory = Path(sys.argv[1])
    layout = json.loads((directory / "layout.json").read_text())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if layout["parent"]:
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != layout["parent"]:
            raise SystemExit("the process that wanted a cluster is gone")
    machines: list[subprocess.Popen[str]] = []
    processes: dict[str, int] = {}
    try:
        separate(directory)
        machines += [start_machine(name) for name in layout["machines"]]
        for number, (name, address) in enumerate(layout["machines"].items()):
            processes[name] = process_1(machines[number])
            connect(number, address, processes[name])
        print(json.dumps(processes), flush=True)
        while True:
            signal.pause()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for process in processes.values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for machine in machines[len(processes) :]:
            machine.kill()
        for machine in machines:
            machine.wait()  # it has waited for its process 1, and that for everything on the machine
        remove_quotas(directory)


if __name__ == "__main__":
    main()
