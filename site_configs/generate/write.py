"""Writes a site file of the machine at hand, for a person to read and to correct."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.sanitize import sanitize_line
from postprocess.base.workdir import WorkDirectory
from site_configs.generate import entries, survey
from site_configs.generate.entries import build_environment_view, build_partition_views
from site_configs.generate.survey import MachineSurvey
from site_configs.schedulers.registry import list_site_names
from site_configs.schema.fields import NAME, NAME_RULE

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
    """Look at the machine and write its site file.

    :param name: of the site; that of the cluster or the host if None.
    :param output: where the file goes; among Plumbline's sites if None.
    :raises UsageError: if the file is there already or cannot be written.
    """
    if name and not NAME.fullmatch(name):
        raise UsageError(f"site new {name}: write {NAME_RULE}")
    if target := choose_target(work, name, output):
        check_not_existing(target)  # before the machine is asked, which may take a minute
    with work.held(), progress.phase("looking"):
        facts = survey.survey_machine(work, scheduler, families, find_wheels, progress)
    chosen = name or survey.choose_site_name(facts)
    path = target or work.source / "site_configs" / f"{chosen}.py"
    text = render_site_file(facts, chosen, format_site_path(work, path, chosen), work.root)
    write_new(path, text)
    report_new_site(path, format_site_path(work, path, chosen), text, progress)
    return 0


def choose_target(work: WorkDirectory, name: str | None, output: Path | None) -> Path | None:
    """Choose the path of the file, if that is known before the machine is inspected."""
    if output:
        return output
    return work.source / "site_configs" / f"{name}.py" if name else None


def check_not_existing(path: Path) -> None:
    """Refuse to overwrite a file that a person may have written."""
    if path.exists() or path.is_symlink():
        fix = "choose another name or --output FILE, or remove it first"
        raise UsageError(f"{path}: is there already and is not overwritten; {fix}")


def format_site_path(work: WorkDirectory, path: Path, name: str) -> str:
    """Format how a command names the site: by its name if the file is among Plumbline's, else by its path."""
    own = (work.source / "site_configs" / f"{name}.py").resolve()
    return name if path.resolve() == own else str(path)


def render_site_file(facts: MachineSurvey, name: str, path: str, work: Path) -> str:
    """Render the text of the site file."""
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
            remarks=entries.list_remarks(facts),
            environments=environments,
            uses_work_directory=any("work_directory()" in environment.mpicc for environment in environments),
            description=f"{kind[:1].upper()}{kind[1:]}" if scheduler else facts.machine.cpu_model,
            hostnames=survey.build_host_pattern(facts.host),
            modules=facts.modules,
            partitions=partitions,
            registering=", ".join(sorted(registering)),
        )
    )


def make_jinja() -> jinja2.Environment:
    """Make the Jinja environment. Text from the machine goes into comments and Python strings only."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=True,
        autoescape=False,  # the result is Python, not HTML
    )
    made.filters |= {"python": entries.format_python, "comment": sanitize_line}
    return made


def write_new(path: Path, text: str) -> None:
    """Write a file that must not be there yet.

    :raises UsageError: if it is, or cannot be written.
    """
    try:
        files.create_file(path, text.encode(errors="backslashreplace"))
    except FileExistsError:
        check_not_existing(path)
        raise
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another place with --output") from None


def report_new_site(path: Path, shown: str, text: str, progress: Progress) -> None:
    """Say what was written and what is to be done."""
    progress.say(f"wrote {path}")
    for number, line in enumerate(text.splitlines(), 1):
        if "CHANGE:" in line:
            progress.say(f"  line {number}: {line.strip()}")
    progress.say(f"read it, change what is marked, then: ./plumbline site check {shown}")
