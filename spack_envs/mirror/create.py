"""``./plumbline mirror``: make a mirror on a machine with a network, or verify one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.os_errors import lock_errors
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from spack_envs.machine import SAFE_PATH
from spack_envs.mirror import manifest, parts
from spack_envs.mirror.manifest import INCOMING, NAME, Manifest, MissingPart, encode_manifest
from spack_envs.mirror.spack_sources import GivenSource
from spack_envs.mirror.use import JARS, RELEASES, SOURCES, WHEELS

PARTS = {
    WHEELS: parts.gather_wheels,
    JARS: parts.gather_jars,
    RELEASES: parts.gather_releases,
    SOURCES: parts.gather_sources,
}
NEEDED_BYTES = 1_000_000_000  #: free on the disk before the first file of a mirror is written
UNFINISHED = MissingPart("what was still to come", "mirror create did not come to its end")


def create_mirror(work: WorkDirectory, folder: Path, given: Sequence[GivenSource], progress: Progress) -> int:
    """Make or complete a mirror. Return 1 if a part is not available.

    :raises UsageError: if ``folder`` cannot become one, or a given source cannot be used.
    """
    folder = folder.absolute()
    before = open_manifest(folder)
    sources = {source.package: source for source in given}
    with hold_mirror(folder), make_scratch_folder(folder) as scratch:
        making = parts.MirrorBuild(work, folder, scratch, before, sources, progress)
        write_manifest(folder, replace(before, missing=(UNFINISHED,)))
        done: list[parts.GatheredPart] = []
        for name, gather in PARTS.items():
            with progress.phase(name):
                done.append(gather(making))
            result = build_manifest(folder, before, done)
            write_manifest(folder, result if len(done) == len(PARTS) else merge_manifests(result, before))
        remove_strays(folder, result)
    report_contents(folder, result, progress)
    return 1 if result.missing else 0


def verify_mirror(folder: Path, progress: Progress) -> int:
    """Verify all of a mirror, and report its contents. Return 1 if something is wrong or missing."""
    folder = folder.absolute()
    contents = manifest.read_manifest(folder)
    progress.say(f"verifying {len(contents.files)} files in {folder}")
    faults = list(manifest.find_mirror_faults(folder, contents))
    report_contents(folder, contents, progress)
    for fault in faults:
        progress.say(f"wrong: {fault}")
    if not faults:
        progress.say("every file is as it should be")
    return 1 if faults or contents.missing else 0


def open_manifest(folder: Path) -> Manifest:
    """Read the manifest of a mirror, or make an empty one in a folder that can become a mirror.

    :raises UsageError: if it cannot: it is a file, has other contents, is for another Python, or the disk is
    full.
    """
    if not SAFE_PATH.fullmatch(str(folder)):
        fix = "name a directory of letters, digits and _ + . - only (Spack changes others)"
        raise UsageError(f"{str(folder)!r}: {fix}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; name a directory for the mirror")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path for path in folder.iterdir() if not path.name.startswith(INCOMING)]
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}; name another directory") from None
    if others and not (folder / NAME).exists():
        raise UsageError(f"{folder}: is neither empty nor a mirror; name another directory")
    if others:
        before = manifest.read_manifest(folder)
        manifest.check_python(folder, before)
        return before
    if free < NEEDED_BYTES:
        what = f"has {format_megabytes(free)} free, and a mirror needs up to {format_megabytes(NEEDED_BYTES)}"
        raise UsageError(f"{folder}: {what}; name a directory on another disk")
    return Manifest(*manifest.describe_python())


@contextmanager
def hold_mirror(folder: Path) -> Iterator[None]:
    """Hold a mirror exclusively; the lock ends with the process, however it ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with lock_errors(folder, "name a directory"):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{folder}: another mirror create works on it; wait for it") from None
    finally:
        os.close(descriptor)


@contextmanager
def make_scratch_folder(folder: Path) -> Iterator[Path]:
    """Make a scratch folder in the mirror, removed at the end, and remove those of killed processes.

    :raises UsageError: if nothing can be written there.
    """
    for path in folder.glob(f"{INCOMING}*"):
        shutil.rmtree(path, ignore_errors=True)
    with explaining(folder, "name a directory that you may write"):
        scratch = Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def build_manifest(folder: Path, before: Manifest, gathered: Sequence[parts.GatheredPart]) -> Manifest:
    paths = sorted({path for part in gathered for path in part.paths})
    return replace(
        before,
        releases=tuple(release for part in gathered for release in part.releases),
        replaced=tuple(source for part in gathered for source in part.replaced),
        missing=tuple(entry for part in gathered for entry in part.missing),
        files=tuple(manifest.describe_file(folder, path) for path in paths),
    )


def merge_manifests(result: Manifest, before: Manifest) -> Manifest:
    """Merge manifests: the earlier one stands for the parts that are still to come."""
    present = {file.path for file in result.files}
    later = [file for file in before.files if file.path not in present]
    names = {release.name for release in result.releases}
    return replace(
        result,
        files=tuple(sorted([*result.files, *later], key=lambda file: file.path)),
        releases=(*result.releases, *(release for release in before.releases if release.name not in names)),
        replaced=result.replaced or before.replaced,
        missing=(*result.missing, UNFINISHED),
    )


def write_manifest(folder: Path, contents: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    files.replace_files({folder / NAME: encode_manifest(contents)})


def remove_strays(folder: Path, contents: Manifest) -> None:
    """Remove files from the folders of a mirror that no longer belong to it."""
    listed = {file.path for file in contents.files}
    for name in PARTS:
        for path in manifest.list_present(folder, name):
            if path not in listed:
                (folder / path).unlink()


def format_megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def report_contents(folder: Path, contents: Manifest, progress: Progress) -> None:
    total = sum(file.bytes for file in contents.files)
    progress.say(f"{folder}: {len(contents.files)} files, {format_megabytes(total)}")
    for release in contents.releases:
        progress.say(f"  {release.name} {release.tag} (commit {release.commit[:12]})")
    sources = [file for file in contents.files if file.path.startswith(f"{SOURCES}/")]
    progress.say(f"  {len(sources)} sources")
    for source in contents.replaced:
        official = f"replaces the official one ({source.official[:12]}...)"
        progress.say(f"    {source.package} {source.version}: {source.origin}, {official}")
    wheels = [file for file in contents.files if file.path.startswith(f"{WHEELS}/")]
    where = f"Python {contents.python} on {contents.platform}"
    progress.say(f"  {len(wheels)} wheels for {where}")
    if jars := [file for file in contents.files if file.path.startswith(f"{JARS}/")]:
        progress.say(f"  {len(jars)} jars")
    for part in contents.missing:
        progress.say(f"missing: {part.what}: {part.reason}")
