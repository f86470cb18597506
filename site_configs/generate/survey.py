"""Survey a machine for ``site new`` before anything is written."""

import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from site_configs.mpi import login_node
from site_configs.mpi.family import parse_mpi_word
from site_configs.mpi.inventory import take_inventory
from site_configs.mpi.wheels import FAMILIES
from site_configs.schedulers import registry
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.module_systems import ModuleSystem, module_system
from site_configs.topology.machine import Machine, read_machine, read_usable_threads

NONE = "none"  #: the word for no scheduler


@dataclass(frozen=True)
class MachineSurvey:
    host: str
    date: str
    machine: Machine
    scheduler: Scheduler | None
    modules: ModuleSystem
    mpis: login_node.LoginMpis
    threads_per_core: int = 1  #: hardware threads of a core that this process may use
    cray_modules: tuple[str, ...] = ()


def survey_machine(
    work: WorkDirectory,
    scheduler: str | None,
    families: Sequence[str] | None,
    find_wheels: Callable[[], Path | None],
    progress: Progress,
) -> MachineSurvey:
    """Survey the machine. Nothing is submitted to a scheduler, and no MPI program is started under one.

    :param scheduler: ``none`` to look at this machine only; None to detect it.
    :param families: MPI families whose wheels are installed if the machine does not have them.
    :param find_wheels: returns the folder of a mirror with these wheels; None for the package index.
    :raises UsageError: if there is a scheduler that does not answer.
    """
    detected = None if scheduler == NONE else find_scheduler(progress)
    return MachineSurvey(
        host=platform.node(),
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        machine=read_machine(),
        scheduler=detected,
        modules=module_system(os.environ),
        mpis=find_mpis(work, detected, families, find_wheels, progress),
        threads_per_core=read_usable_threads(),
        cray_modules=tuple(login_node.list_cray_modules(os.environ)),
    )


def find_scheduler(progress: Progress) -> Scheduler | None:
    """Find the machine's scheduler; None if it has none."""
    try:
        detected = registry.detect_scheduler()
    except registry.SchedulerError as error:
        fix = f"ask again when it answers, or --scheduler {NONE} for this machine alone"
        raise UsageError(f"the scheduler does not answer: {error}; {fix}") from None
    if detected:
        queues = ", ".join(queue.name for queue in detected.queues) or "none reported"
        progress.say(f"scheduler: {detected.title}; partitions: {queues}")
    else:
        progress.say("no scheduler (no sinfo, pbsnodes or bqueues on the search path)")
    return detected


def find_mpis(
    work: WorkDirectory,
    scheduler: Scheduler | None,
    families: Sequence[str] | None,
    find_wheels: Callable[[], Path | None],
    progress: Progress,
) -> login_node.LoginMpis:
    """Find the MPIs. Without a scheduler they are started; on a login node they only compile a program."""
    for word in families or ():
        asked = parse_mpi_word(word)
        if asked.by_abi:
            fix = "write standard_abi= into the new site file"
            raise UsageError(f"--mpis: {word}: a site file names the standard ABI itself; {fix}")
        if asked.layer:
            fix = "write an environment with its modules or variables into the new site file"
            raise UsageError(f"--mpis: {word}: a site file names libraries below an MPI itself; {fix}")
    wheels = find_wheels()
    if scheduler is None:
        inventory = take_inventory(work, families, progress, False, wheels)
        return login_node.LoginMpis(inventory.mpis, inventory.unusable)
    if unknown := sorted(set(families or ()) - set(FAMILIES)):
        choice = ", ".join(FAMILIES)
        raise UsageError(f"--mpis: the package index has no {unknown[0]!r}: choose from {choice}")
    return login_node.find_login_mpis(work.root / "mpi", families or (), progress.say, wheels)


def build_host_pattern(host: str) -> str:
    r"""Build a pattern for hosts named like this one: ``login\d+`` for ``login03.site``."""
    return re.sub(r"\d+", r"\\d+", re.escape(host.partition(".")[0]))


def choose_site_name(facts: MachineSurvey) -> str:
    """Choose a default name for the site: the cluster's, or the host's."""
    cluster = facts.scheduler.cluster if facts.scheduler else ""
    return clean_name(cluster or facts.host.partition(".")[0])


def clean_name(text: str) -> str:
    """Replace characters that are not allowed in names of files, systems and partitions."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def choose_distinct_names(texts: Sequence[str]) -> list[str]:
    """Choose a name for each text, all different apart from case. An allowed text stays as it is.

    Results are kept in folders of these names, and some file systems do not distinguish ``A`` from ``a``.
    """
    taken: dict[str, int] = {}  # index of the text that has the name
    for index, text in enumerate(texts):
        if clean_name(text) == text:
            taken.setdefault(text.lower(), index)
    names = []
    for index, text in enumerate(texts):
        name = clean_name(text)
        choices = (name, *(f"{name}_{number}" for number in range(2, len(texts) + 2)))
        chosen = next(choice for choice in choices if taken.get(choice.lower(), index) == index)
        taken[chosen.lower()] = index
        names.append(chosen)
    return names
