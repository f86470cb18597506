"""Write a site file of this machine, entry by entry, for a person to read and correct."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postprocess.base import files, formats
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.sanitize import quote_word, sanitize_line
from postprocess.base.workdir import WorkDirectory
from site_configs.families import FAMILIES, PACKAGES
from site_configs.generate import survey
from site_configs.generate.survey import MachineSurvey, choose_distinct_names
from site_configs.mpi.family import Mpi
from site_configs.mpi.probe import extract_identity
from site_configs.schedulers.base import CRAY, NodeKind, Queue, Scheduler, select_needed_kinds
from site_configs.schedulers.registry import LOCAL, list_site_names
from site_configs.schema.fields import NAME, NAME_RULE
from site_configs.topology.gpus import Gpus, find_gpus_here, guess_kind
from site_configs.topology.machine import Machine

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class EnvironmentView:
    """One call of ``environment``. All fields but ``name`` and the remarks are Python code."""

    name: str
    found: str
    family: str
    library: str
    modules: str
    mpicc: str
    prefix: str
    launcher: str
    why: str
    env_vars: str


def build_environment_view(facts: MachineSurvey, mpi: Mpi, work: Path) -> EnvironmentView:
    pair = (facts.scheduler or LOCAL).choose_launcher(mpi)
    modules = list(facts.cray_modules) if mpi.origin == CRAY else list(mpi.modules)
    words = pair.launcher if isinstance(pair.launcher, tuple) else (pair.launcher,)
    launcher = f"[{', '.join(format_relative_path(word, work) for word in words)}]"
    # Slurm's srun and Cray's launcher bind by their own options and ignore these variables.
    started_by_mpi = "mpi" in Path(words[0]).name
    variables = mpi.env if started_by_mpi else {}
    origins = {
        "module": f"module {mpi.module}",
        "wheel": "wheel in the work directory",
        CRAY: f"{CRAY} ({mpi.mpicc})",
    }
    return EnvironmentView(
        name=format_python(mpi.name),
        found=origins.get(mpi.origin, f"{mpi.mpicc} on the search path"),
        family=format_python(mpi.family),
        library=format_python(extract_identity(mpi.library)),
        modules=format_python(modules) if modules else "",
        mpicc=format_python("mpicc") if mpi.module else format_relative_path(mpi.mpicc, work),
        prefix=format_python(mpi.prefix) if mpi.module and mpi.family in PACKAGES else "",
        launcher=launcher if isinstance(pair.launcher, tuple) else format_registered(pair.launcher),
        why=pair.why,
        env_vars=format_variables(variables, work) if variables else "",
    )


def list_remarks(facts: MachineSurvey) -> list[str]:
    remarks: list[str] = []
    if facts.scheduler:
        remarks += facts.scheduler.notes
        _, left_out = select_needed_kinds(facts.scheduler.queues)
        remarks += [f"partition {name} is not in this file: {why}" for name, why in left_out.items()]
    remarks += facts.mpis.notes
    remarks += [f"{wrapper.mpicc} is not usable: {wrapper.problem}" for wrapper in facts.mpis.unusable]
    return remarks


FEW_NODES = 4  #: most nodes that a new site measures; a night on thousands is for a person to decide
LSCPU = "`lscpu` on a compute node shows it"


@dataclass(frozen=True)
class AnnotatedValue:
    """A value of the site file, with its origin or what a person must do about it."""

    value: str  #: the value as Python code
    said: str
    change: bool = False

    @property
    def comment(self) -> str:
        """The remark behind the value."""
        return f"CHANGE: {self.said}" if self.change else self.said


@dataclass(frozen=True)
class PartitionView:
    name: str
    remark: str
    scheduler: AnnotatedValue
    access: AnnotatedValue
    cores: AnnotatedValue
    sockets: AnnotatedValue
    nodes: AnnotatedValue
    switch: AnnotatedValue
    threads: AnnotatedValue  #: without a remark if a core has one
    gpus: AnnotatedValue  #: without a remark if there are none


def build_partition_views(facts: MachineSurvey) -> list[PartitionView]:
    """Build partitions that cover every node once, or this machine if there is no scheduler."""
    scheduler = facts.scheduler
    if scheduler is None:
        return [build_machine_view(facts.machine, facts.threads_per_core)]
    if not scheduler.queues:
        kind = NodeKind(hosts=())
        return [build_partition_view(scheduler, Queue("", (kind,)), kind, "cpu")]
    kept, _ = select_needed_kinds(scheduler.queues)
    names = choose_distinct_names([name_kind(queue, kind) for queue, kind in kept])
    return [
        build_partition_view(scheduler, queue, kind, name)
        for (queue, kind), name in zip(kept, names, strict=True)
    ]


def name_kind(queue: Queue, kind: NodeKind) -> str:
    """Name the nodes of one kind of a queue, in the scheduler's terms."""
    return f"{queue.name}_{kind.cores}c" if len(queue.kinds) > 1 else queue.name


def build_machine_view(machine: Machine, threads: int) -> PartitionView:
    where = "of this machine, which this process may use"
    return PartitionView(
        name=format_python("cpu"),
        remark="this machine itself; nothing stands between a launch and the next one",
        scheduler=AnnotatedValue(format_python(LOCAL.backend), ""),
        access=AnnotatedValue("[]", ""),
        cores=AnnotatedValue(str(machine.cores), f"physical cores {where}"),
        sockets=AnnotatedValue(str(machine.sockets), "/sys/devices/system/cpu"),
        nodes=AnnotatedValue("1", "without a scheduler there is one node"),
        switch=AnnotatedValue("0", ""),
        threads=annotate_threads(threads, "/sys/devices/system/cpu"),
        gpus=annotate_gpus(find_gpus_here(), "files of the kernel's driver"),
    )


def build_partition_view(scheduler: Scheduler, queue: Queue, kind: NodeKind, name: str) -> PartitionView:
    return PartitionView(
        name=format_python(name),
        remark=describe_partition(scheduler, queue, kind),
        scheduler=choose_backend(scheduler),
        access=choose_access_options(scheduler, queue, kind),
        cores=count_cores(scheduler, kind),
        sockets=count_sockets(scheduler, kind),
        nodes=count_nodes(scheduler, queue, kind),
        switch=find_switch_size(scheduler, kind),
        threads=annotate_threads(kind.threads_per_core, scheduler.query_commands),
        gpus=annotate_named_gpus(kind.gpus, scheduler.query_commands),
    )


def annotate_threads(count: int, source: str) -> AnnotatedValue:
    """Annotate the hardware threads of a core; a single one needs no remark."""
    return AnnotatedValue(str(count), f"hardware threads ({source}); kernels use two" if count > 1 else "")


def annotate_gpus(gpus: Gpus | None, source: str) -> AnnotatedValue:
    """Annotate the GPUs of a node; no remark if there are none."""
    annotation = {"kind": gpus.kind, "per_node": gpus.per_node} if gpus else {}
    return AnnotatedValue(format_python(annotation), f"{source}; give environments gpu= too" if gpus else "")


def annotate_named_gpus(names: Sequence[str], source: str) -> AnnotatedValue:
    """Annotate the GPUs of a node from the scheduler's names for them."""
    if not names:
        return annotate_gpus(None, source)
    annotated = annotate_gpus(Gpus(kind=guess_kind(names[0]), per_node=len(names)), f"{names[0]} ({source})")
    unnamed = f"{len(names)} GPUs ({source}); cuda or rocm; give environments gpu= too"
    return annotated if names[0] else AnnotatedValue(annotated.value, unnamed, change=True)


def choose_backend(scheduler: Scheduler) -> AnnotatedValue:
    without = "" if scheduler.accounting else "accounting is off here, and it does without"
    return AnnotatedValue(format_registered(scheduler.backend), without)


def describe_partition(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> str:
    if not kind.hosts:
        return f"CHANGE: name it, and give it the options of a queue of {scheduler.title}"
    words = [formats.plural(len(kind.hosts), "node")]
    words += [f"{kind.unusable} of them not usable now"] if kind.unusable else []
    words += [f"{formats.size(kind.memory_bytes // 10**9 * 10**9)} of memory"]
    words += [f"longest job {formats.duration(queue.seconds)}"] if queue.seconds else []
    words += ["default"] if queue.default else []
    return ", ".join(words)


def choose_access_options(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> AnnotatedValue:
    """Choose the options that reach these nodes and keep others off them."""
    options = [option.format(queue.name) for option in scheduler.exclusive]
    options += [kind.option] if kind.option else []
    if len(queue.kinds) > 1 and not kind.option:
        others = formats.plural(len(queue.kinds) - 1, "other kind")
        remark = f"{queue.name} has {others} of nodes too: add what selects these alone"
        return AnnotatedValue(format_python(options), remark, change=True)
    remark = "exclusive nodes make quiet measurements; add an account where jobs need one"
    return AnnotatedValue(format_python(options), remark, change=not queue.name)


def count_cores(scheduler: Scheduler, kind: NodeKind) -> AnnotatedValue:
    """Count the physical cores of a node, with a remark on the origin of the number."""
    if not kind.cores:
        return AnnotatedValue("0", f"physical cores of a node; {LSCPU}", change=True)
    if not scheduler.reports_physical_cores and not kind.sockets:
        remark = f"physical cores of a node; {scheduler.title} counts {kind.cores} CPUs; {LSCPU}"
        return AnnotatedValue(str(kind.cores), remark, change=True)
    reserved = f", without {kind.reserved_cores} kept for the system" if kind.reserved_cores else ""
    threads = f"{kind.hardware_threads} hardware threads"
    even = kind.cores - kind.cores % kind.sockets
    return AnnotatedValue(str(even), f"physical cores{reserved}; {threads} ({scheduler.query_commands})")


def count_sockets(scheduler: Scheduler, kind: NodeKind) -> AnnotatedValue:
    if not scheduler.sockets_are_known(kind):
        remark = f"{scheduler.title} reports {kind.sockets} sockets of one core, its default; {LSCPU}"
        return AnnotatedValue("1", remark, change=True)
    if not kind.sockets:
        return AnnotatedValue("0", f"{scheduler.title} does not report it; {LSCPU}", change=True)
    return AnnotatedValue(str(kind.sockets), scheduler.query_commands)


def count_nodes(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> AnnotatedValue:
    """Choose the largest number of nodes that a night measures.

    A node that is down or drained will come back: nights until then skip what needs it, and report that.
    """
    if not kind.hosts:
        return AnnotatedValue("0", "nodes that a night may use", change=True)
    most = min(len(kind.hosts), queue.most_nodes or len(kind.hosts))
    if not kind.usable:
        remark = f"nodes that a night may use; none of {len(kind.hosts)} is usable now"
        return AnnotatedValue("0", remark, change=True)
    few = min(most, FEW_NODES)
    now = f", {kind.usable} of them now" if kind.usable < few else ""
    there = f"of {most} that a job can have{now} ({scheduler.query_commands})"
    return AnnotatedValue(str(few), f"{there}; write more to measure more" if few < most else there)


def find_switch_size(scheduler: Scheduler, kind: NodeKind) -> AnnotatedValue:
    """Find the number of nodes under one leaf switch; 0 for a single node."""
    if len(kind.hosts) == 1:
        return AnnotatedValue("0", "")
    if count := scheduler.nodes_per_switch(kind.hosts):
        return AnnotatedValue(str(count), f"nodes under one leaf switch ({scheduler.switch_command})")
    remark = f"nodes under one leaf switch; {scheduler.title} does not report it; 0 if unknown"
    return AnnotatedValue("0", remark, change=True)


def format_python(value: Any) -> str:
    """Format a text, a number or a list of them as Python, in pure ASCII."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def format_registered(name: str) -> str:
    """Format the name of a launcher or scheduler as Python."""
    return list_site_names().get(name, format_python(name))


def format_variables(variables: Mapping[str, str], work: Path) -> str:
    """Format variables as Python, with the values as a shell reads them."""
    pairs = (
        f"{format_python(name)}: {format_relative_path(quote_word(value), work)}"
        for name, value in variables.items()
    )
    return f"{{{', '.join(pairs)}}}"


def format_relative_path(text: str, work: Path) -> str:
    """Format a word of a command as Python, relative to the work directory if it is inside."""
    path = Path(text)
    if path.is_absolute() and path.is_relative_to(work):
        return f"str(work_directory() / {format_python(str(path.relative_to(work)))})"
    return format_python(text)


TEMPLATES = Path(__file__).parent
TEMPLATE = "site.py.j2"


def write_new_site(
    work: WorkDirectory,
    name: str | None,
    output: Path | None,
    scheduler: str | None,
    families: Sequence[str] | None,
    find_wheels: Callable[[], Path | None],
    progress: Progress,
) -> int:
    """Survey the machine and write its site file.

    :param name: name of the site; that of the cluster or the host if None.
    :param output: path of the file; among Plumbline's sites if None.
    :raises UsageError: if the file exists or cannot be written.
    """
    if name and not NAME.fullmatch(name):
        raise UsageError(f"site new {name}: write {NAME_RULE}")
    if target := choose_target(work, name, output):
        check_not_existing(target)  # before the survey, which may take a minute
    with work.held(), progress.phase("looking"):
        facts = survey.survey_machine(work, scheduler, families, find_wheels, progress)
    chosen = name or survey.choose_site_name(facts)
    path = target or work.source / "site_configs" / f"{chosen}.py"
    text = render_site_file(facts, chosen, format_site_path(work, path, chosen), work.root)
    write_new(path, text)
    report_new_site(path, format_site_path(work, path, chosen), text, progress)
    return 0


def choose_target(work: WorkDirectory, name: str | None, output: Path | None) -> Path | None:
    """Choose the path of the file if it is known before the survey."""
    if output:
        return output
    return work.source / "site_configs" / f"{name}.py" if name else None


def check_not_existing(path: Path) -> None:
    """Refuse to overwrite a file that a person may have written."""
    if path.exists() or path.is_symlink():
        fix = "choose another name or --output FILE, or remove it first"
        raise UsageError(f"{path}: is there already and is not overwritten; {fix}")


def format_site_path(work: WorkDirectory, path: Path, name: str) -> str:
    """Format the site for a command: its name if the file is among Plumbline's, else its path."""
    shipped = (work.source / "site_configs" / f"{name}.py").resolve()
    return name if path.resolve() == shipped else str(path)


def render_site_file(facts: MachineSurvey, name: str, path: str, work: Path) -> str:
    scheduler = facts.scheduler
    kind = f"a cluster with {scheduler.title}" if scheduler else "a machine without a scheduler"
    environments = [build_environment_view(facts, mpi, work) for mpi in facts.mpis.mpis]
    partitions = build_partition_views(facts)
    names = [environment.launcher for environment in environments]
    names += [view.scheduler.value for view in partitions]
    registering = {name.partition(".")[0] for name in names if name in list_site_names().values()}
    return (
        make_jinja()
        .get_template(TEMPLATE)
        .render(
            name=name,
            kind=kind,
            host=re.sub(r"[^\w.-]", "_", facts.host, flags=re.ASCII),
            date=facts.date,
            path=re.sub(r"[^\w./-]", "_", path, flags=re.ASCII),
            login=scheduler is not None,
            remarks=list_remarks(facts),
            environments=environments,
            uses_work_directory=any("work_directory()" in environment.mpicc for environment in environments),
            description=f"{kind[:1].upper()}{kind[1:]}" if scheduler else facts.machine.cpu_model,
            hostnames=survey.build_host_pattern(facts.host),
            modules=facts.modules,
            partitions=partitions,
            families=", ".join(FAMILIES),
            registering=", ".join(sorted(registering)),
        )
    )


def make_jinja() -> "jinja2.Environment":
    """Make the Jinja environment. Text from the machine goes into comments and Python strings only."""
    import jinja2  # here: who writes no site file does not wait for it

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=True,
        autoescape=False,  # the result is Python, not HTML
    )
    made.filters |= {"python": format_python, "comment": sanitize_line}
    return made


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet. Raises UsageError if it does, or cannot be written."""
    try:
        files.create_file(path, text.encode(errors="backslashreplace"))
    except FileExistsError:
        check_not_existing(path)
        raise
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another place with --output") from None


def report_new_site(path: Path, shown: str, text: str, progress: Progress) -> None:
    progress.say_whole(f"wrote {path}")
    for number, line in enumerate(text.splitlines(), 1):
        if "CHANGE:" in line:
            progress.say_whole(f"  line {number}: {line.strip()}")
    progress.say("read it, change what is marked, then", command=f"./plumbline site check {shown}")
