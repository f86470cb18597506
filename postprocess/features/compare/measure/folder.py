"""The folder of a comparison: begun, found again after a kill, or discarded when it is refused."""

from __future__ import annotations

from pathlib import Path

from postprocess.base.documents.json_log import truncate_unfinished_line
from postprocess.base.documents.records import find_other_field
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data, page
from postprocess.features.compare.data import ComparisonHeader, StoredComparison
from postprocess.features.compare.history import page as history_page

FOLDER = "compare"  #: of the work directory
#: What must be asked for again to continue a comparison.
SAME_AGAIN = ("site", "old", "new", "choice", "margins", "seconds", "control", "versions")


def find_or_begin(
    work: WorkDirectory, directory: Path | None, asked: ComparisonHeader, progress: Progress
) -> tuple[Path, StoredComparison]:
    """Find the comparison that an earlier call of the same command left unfinished, or begin one.

    :param directory: where the user wants it; None for a folder of the work directory
    :raises UsageError: if the folder that was asked for holds another one, or one that is finished
    """
    if directory:
        path = directory / data.FILE
        if is_finished(directory):
            raise UsageError(f"{directory}: holds a comparison; choose another --output")
        found = path if path.exists() else None
    else:
        path = name_new_folder(work, asked) / data.FILE
        found = find_unfinished(work.root / FOLDER, asked)
    if found is None:
        data.append_record(path, asked)
        return path, data.read_comparison(path)
    truncate_unfinished_line(found)
    stored = data.read_comparison(found)
    if other := find_other_field(stored.header, asked, SAME_AGAIN):
        raise UsageError(f"{found}: was begun with other {other}; choose another --output")
    progress.say(f"going on with {found}: {plural(len(stored.passes), 'pass', 'es')} done")
    return found, stored


def name_new_folder(work: WorkDirectory, asked: ComparisonHeader) -> Path:
    """Name the folder of a comparison that begins, by its time."""
    return work.root / FOLDER / asked.started_utc.replace(":", "").replace("-", "")


def find_unfinished(folder: Path, asked: ComparisonHeader) -> Path | None:
    """Find the last comparison that asked for the same and has no result yet."""
    for path in sorted(folder.glob(f"*/{data.FILE}"), reverse=True):
        if not is_finished(path.parent):
            try:
                header = data.read_comparison(path).header
            except UsageError:  # damaged: a new one is begun beside it
                continue
            if not find_other_field(header, asked, SAME_AGAIN):
                return path
    return None


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds the result of a comparison or history."""
    return any((folder / each).exists() for each in (page.JSON, history_page.JSON))


def discard_unplanned(path: Path) -> None:
    """Discard a comparison that was refused before its looks were fixed: nothing in it counts."""
    if data.read_comparison(path).looks:
        return
    path.unlink()
    if not any(path.parent.iterdir()):
        path.parent.rmdir()
