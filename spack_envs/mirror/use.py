"""The mirror that the user has named: verified before anything is taken from it, and remembered.

A mirror that the user has named is the only source of everything. One in the user's cache is used
automatically, but for sources only, like the copy of Spack there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from spack_envs.layout import SpackEnvironmentError, SpackLayout
from spack_envs.machine import SAFE_PATH
from spack_envs.mirror import manifest
from spack_envs.mirror.manifest import NAME, Manifest, MirrorError
from spack_envs.provide import MirroredSources, SpackSettings, Substitute, unpack_release

SPACK = ("spack", "spack-packages")  #: releases that are needed together
SOURCES, WHEELS, RELEASES, JARS = "sources", "wheels", "releases", "jars"  #: folders of a mirror


@dataclass(frozen=True)
class Mirror:
    """A mirror that has been verified."""

    folder: Path
    manifest: Manifest
    alone: bool  #: whether nothing may come from elsewhere

    @property
    def wheels(self) -> Path | None:
        """The only folder that wheels may come from, or None."""
        return self.folder / WHEELS if self.alone else None

    @property
    def jars(self) -> Path | None:
        """The only folder that jars may come from, or None."""
        return self.folder / JARS if self.alone else None

    @property
    def sources(self) -> MirroredSources:
        fields = ("package", "version", "origin", "sha256")
        substitutes = (
            Substitute(*(getattr(source, name) for name in fields)) for source in self.manifest.replaced
        )
        return MirroredSources(self.folder / SOURCES, tuple(substitutes))

    def unpacked(self, work: Path) -> Mapping[str, Path] | None:
        """Return Spack and its recipes, unpacked; None if they may come from elsewhere.

        :raises SpackEnvironmentError: if one is not in the mirror or cannot be unpacked.
        """
        if not self.alone:
            return None
        sums = {file.path: file.sha256 for file in self.manifest.files}
        archives = {release.name: release.path for release in self.manifest.releases}
        if lacking := [name for name in SPACK if name not in archives]:
            raise SpackEnvironmentError(f"{self.folder}: this mirror has no {lacking[0]}")
        root = SpackLayout(work).mirrored
        return {
            name: unpack_release(self.folder / archives[name], sums[archives[name]], root) for name in SPACK
        }


def choose_mirror(work: Path, asked: str | None, progress: Progress) -> Mirror | None:
    """Choose and verify the mirror to use; None if there is none.

    :param asked: value of ``--mirror`` in this call; such a mirror is verified completely
    :raises UsageError: if a mirror that the user has named, in whatever way, is damaged.
    """
    folder = manifest.find_named_mirror(work, asked)
    if folder is None:
        if asked == manifest.FORGET:
            manifest.locate_memory(work).unlink(missing_ok=True)
        return find_default_mirror(progress)
    try:
        mirror = open_mirror(folder, alone=True, thorough=asked is not None, progress=progress)
    except MirrorError as error:
        if asked or str(folder) != manifest.read_remembered_mirror(work):
            raise
        forget = f"./plumbline setup --mirror {manifest.FORGET} does without it"
        raise UsageError(f"{error} ({forget})") from None
    if manifest.read_remembered_mirror(work) != str(folder):
        files.replace_files({manifest.locate_memory(work): f"{folder}\n".encode()})
    for part in mirror.manifest.missing:
        progress.note(f"mirror {folder} lacks {part.what} ({part.reason})")
    return mirror


def find_default_mirror(progress: Progress) -> Mirror | None:
    """Find the mirror in the user's cache, if there is a complete one."""
    folder = SpackSettings().cache / "mirror"
    if not (folder / NAME).exists():
        return None
    try:
        return open_mirror(folder, alone=False, thorough=False, progress=progress)
    except MirrorError as error:
        progress.note(f"mirror in the user's cache is not used: {error}")
        return None


def open_mirror(folder: Path, alone: bool, thorough: bool, progress: Progress) -> Mirror:
    """Open a mirror, and verify its sources or all of its files.

    Wheels and Spack are verified again when they are used.

    :raises MirrorError: if a file differs from the manifest.
    """
    if not SAFE_PATH.fullmatch(str(folder)):
        raise MirrorError(
            f"{str(folder)!r}: Spack needs a path of letters, digits and _ + . - only; move the mirror"
        )
    contents = manifest.read_manifest(folder)
    if thorough:
        progress.say(f"verifying the mirror {folder}")
        manifest.check_python(folder, contents)
    manifest.verify_files(folder, contents, "" if thorough else f"{SOURCES}/")
    return Mirror(folder, contents, alone)


def report_replaced(mirror: Mirror, progress: Progress) -> None:
    """Report the packages that Spack builds from a source other than the official one."""
    for source in mirror.manifest.replaced:
        progress.note(
            f"{source.package} {source.version} is built from {source.origin}, not from the official source "
            f"(sha256 {source.sha256[:12]}..., official {source.official[:12]}...)"
        )
