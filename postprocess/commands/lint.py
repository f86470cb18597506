"""Checks the files that people write: sites, references, checks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.extensions import find_linters, load_named
from postprocess.cli.parser import Parser
from postprocess.commands import site_check
from postprocess.model.plan import list_planned_cases
from postprocess.model.session import Selection
from postprocess.references import lint as reference_lint
from postprocess.references.reference_file import EXPECTED
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import preview_plan
from site_configs.validation.site_files import is_site, list_site_names

SITE = "slurm_cluster.py"  #: the site on which a check is tried: it has partitions of many nodes

EXAMPLE = "./plumbline lint site_configs/mycluster.py reference_data"
FAILS = "a file has an error"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="files or directories (default: all sites and references)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check the files that people write. Returns the exit status."""
    return lint(work, arguments.paths, Progress())


def lint(work: WorkDirectory, paths: Sequence[Path], progress: Progress) -> int:
    """Check these files, or all there are; 1 if something is wrong."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        fix = "name a site, a check or references that are there"
        raise UsageError(f"{missing[0]}: no such file or directory; {fix}")
    problems = []
    for path in paths or default_paths(work):
        found = lint_path(work, path.resolve(), progress)
        progress.say_whole(f"{path}: {'ok' if not found else f'{len(found)} wrong'}")
        problems += found
    for problem in problems:
        progress.say(problem)
    return 1 if problems else 0


def default_paths(work: WorkDirectory) -> list[Path]:
    """Return what is checked by default: reviewed and provisional references, and every site."""
    roots = [root for root in work.reference_roots if root.is_dir()]
    return roots + [
        work.source / "site_configs" / f"{name}.py" for name in sorted(list_site_names(work.source))
    ]


def lint_path(work: WorkDirectory, path: Path, progress: Progress) -> list[str]:
    if path.is_dir():
        return lint_directory(work, path)
    if path.name == EXPECTED:
        return reference_lint.lint_expected(path)
    if path.suffix == ".tsv":
        return reference_lint.lint_reference(path)
    if path.suffix == ".py" and is_site(path):
        return site_check.find_problems(work, path, progress, as_file=True)
    if path.suffix == ".py":
        example = work.source / "site_configs" / SITE
        selection = Selection(example, checks=path, tag="", only_looking=True)
        return dry_run_check(work, path, selection, progress)
    return [f"{path}: neither a site or check (.py), nor a reference file (.tsv), nor a directory of them"]


def lint_directory(work: WorkDirectory, path: Path) -> list[str]:
    """Find what is wrong with the references below a directory. Only those of Plumbline's may have none.

    What extensions keep there is checked by them.
    """
    linters = find_linters()
    if path.name in linters:
        return load_named(linters[path.name])(path)
    known = [root.resolve() for root in work.reference_roots]
    if path not in known and not any(path.rglob("*.tsv")):
        return [f"{path}: has no reference file; name sites one by one"]
    if root := next((each for each in known if each in path.parents), None):
        return [text for text in lint_directory(work, root) if text.startswith(f"{path}/")]
    theirs = [path / name for name in linters if (path / name).is_dir()]
    others = [fault for folder in theirs for fault in load_named(linters[folder.name])(folder)]
    return reference_lint.lint_references(path) + others


def dry_run_check(work: WorkDirectory, path: Path, selection: Selection, progress: Progress) -> list[str]:
    """Find what is wrong with a check, by a dry run on a site."""
    reframe = ReframeDriver(work.source, work.root, work.new_session(), work.reference_roots, None)
    try:
        planned = preview_plan(reframe, selection)
    except UsageError as error:
        return [f"{path}: {error}"]
    progress.say(f"{path}: {len(list_planned_cases(planned))} cases in {len(planned)} launches")
    return []
