"""An offer as one file: sealed by the bidder, opened and verified by the buyer without a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.archive import pack_folder, unpack_archive
from postprocess.base.errors import UsageError
from postprocess.base.signature import (
    MANIFEST,
    SIGNATURE,
    Change,
    compare_manifest,
    compute_root,
    find_seal_fault,
    find_signer,
    list_sealed_files,
    read_signing_key,
    require_signers,
    seal,
)
from postprocess.extensions.procurement.check.violations import Code, Violation

CHANGES = {
    Change.CHANGED: Code.FILE_CHANGED,
    Change.MISSING: Code.FILE_MISSING,
    Change.ADDED: Code.FILE_ADDED,
    Change.SWAPPED: Code.FILE_SWAPPED,
}


UNKNOWN = "nobody has looked whose key that is; --signers FILE does"


@dataclass(frozen=True)
class SealedFolder:
    """What the seal of a folder says."""

    root: str  #: SHA-256 of the manifest; empty without one
    signer: str  #: empty if nobody known signed it
    violations: tuple[Violation, ...]
    key: str = ""  #: fingerprint of the key that signed; empty if no key did

    @property
    def by(self) -> str:
        """Who signed, as far as it is known: who nobody has looked up is a key."""
        return f"{self.signer} ({self.key})" if self.signer else f"the key {self.key or 'unknown'}"


def seal_archive(folder: Path, key: Path, namespace: str, path: Path) -> str:
    """Sign a folder and pack it, manifest and signature first. Returns the root of the manifest.

    :raises UsageError: if it cannot be signed or written
    """
    seal(folder, key, namespace)
    pack_folder(folder, [MANIFEST, SIGNATURE, *list_sealed_files(folder)], path)
    return compute_root(folder)


def open_archive(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder.

    :raises UsageError: if it is none of ours
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty; choose another folder")
    unpack_archive(path, folder)


def verify_seal(folder: Path, signers: Path | None, namespace: str) -> SealedFolder:
    """Verify the seal of a folder: each file that changed, went, came or was swapped, and who signed.

    :param signers: file of allowed signers; None leaves out who it was: any signature of it will do
    :raises UsageError: if the file of signers is none
    """
    if signers:
        require_signers(signers)
    if not (folder / MANIFEST).exists() or not (folder / SIGNATURE).exists():
        lacking = MANIFEST if not (folder / MANIFEST).exists() else SIGNATURE
        return SealedFolder("", "", (Violation(Code.SEAL_MISSING, lacking, "is not there"),))
    found: list[Violation] = []
    signer = key = ""
    place = MANIFEST
    try:
        found += _list_changes(folder)
        place = SIGNATURE
        key = read_signing_key(folder)
        if fault := find_seal_fault(folder, namespace):
            code = Code.SIGNER_UNKNOWN if signers else Code.SEAL_BROKEN
            found.append(Violation(code, SIGNATURE, fault))
            key = ""
    except UsageError as error:
        told = str(error).partition(": ")[2].removesuffix("; ask for the archive as it was signed")
        found.append(Violation(Code.SEAL_BROKEN, place, told))
    if key and signers:
        try:
            signer = find_signer(folder, signers, namespace)
        except UsageError as error:
            found.append(Violation(Code.SIGNER_UNKNOWN, SIGNATURE, str(error).partition(": ")[2]))
    return SealedFolder(compute_root(folder), signer, tuple(found), key)


def _list_changes(folder: Path) -> Iterator[Violation]:
    for name, change in compare_manifest(folder):
        yield Violation(CHANGES[change], name, change.value)
