"""An offer as one file: sealed by the bidder, opened and verified by the buyer without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.base import signature
from postprocess.base.archive import pack_folder, unpack_archive
from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc, utc_now
from postprocess.base.signature import seal
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.commitments import (
    Commitment,
    StoredCommitments,
    check_commitments,
    check_form,
    read_commitments,
)
from postprocess.extensions.procurement.offer import (
    COMMITMENTS,
    SEALED,
    MeasuredRow,
    OpenedOffer,
    open_offer,
    read_sealed,
)
from postprocess.extensions.procurement.run_rules import check_offer
from postprocess.extensions.procurement.violations import Code, Violation

CHANGES = {
    signature.Change.CHANGED: Code.FILE_CHANGED,
    signature.Change.MISSING: Code.FILE_MISSING,
    signature.Change.ADDED: Code.FILE_ADDED,
    signature.Change.SWAPPED: Code.FILE_SWAPPED,
}


UNKNOWN = "nobody has looked whose key that is; --signers FILE does"


@dataclass(frozen=True)
class SealedFolder:
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
    pack_folder(folder, [signature.MANIFEST, signature.SIGNATURE, *signature.list_sealed_files(folder)], path)
    return signature.compute_root(folder)


def open_archive(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder. Raises UsageError if it is none of ours."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty; choose another folder")
    unpack_archive(path, folder)


def verify_seal(folder: Path, signers: Path | None, namespace: str) -> SealedFolder:
    """Verify the seal of a folder: each file that changed, went, came or was swapped, and who signed.

    :param signers: file of allowed signers; None leaves out who it was: any signature of it will do
    :raises UsageError: if the file of signers is none
    """
    if signers:
        signature.require_signers(signers)
    if not (folder / signature.MANIFEST).exists() or not (folder / signature.SIGNATURE).exists():
        lacking = signature.MANIFEST if not (folder / signature.MANIFEST).exists() else signature.SIGNATURE
        return SealedFolder("", "", (Violation(Code.SEAL_MISSING, lacking, "is not there"),))
    found: list[Violation] = []
    signer = key = ""
    place = signature.MANIFEST
    try:
        found += [
            Violation(CHANGES[change], name, change.value)
            for name, change in signature.compare_manifest(folder)
        ]
        place = signature.SIGNATURE
        key = signature.read_signing_key(folder)
        if fault := signature.find_seal_fault(folder, namespace):
            code = Code.SIGNER_UNKNOWN if signers else Code.SEAL_BROKEN
            found.append(Violation(code, signature.SIGNATURE, fault))
            key = ""
    except UsageError as error:
        told = str(error).partition(": ")[2].removesuffix("; ask for the archive as it was signed")
        found.append(Violation(Code.SEAL_BROKEN, place, told))
    if key and signers:
        try:
            signer = signature.find_signer(folder, signers, namespace)
        except UsageError as error:
            found.append(Violation(Code.SIGNER_UNKNOWN, signature.SIGNATURE, str(error).partition(": ")[2]))
    return SealedFolder(signature.compute_root(folder), signer, tuple(found), key)


@dataclass(frozen=True)
class CheckedOffer:
    """An offer, what its seal says, what it commits to and what is wrong with it."""

    offer: OpenedOffer
    seal: SealedFolder | None  #: None for a folder that is still filled
    commitments: StoredCommitments | None
    violations: tuple[Violation, ...]

    @property
    def committed(self) -> list[tuple[MeasuredRow, Commitment]]:
        """The measured rows in which a value is committed."""
        return self.commitments.list_committed(self.offer.rows) if self.commitments else []


def check_folder(folder: Path, official: OfficialSource, issued: str = "", final: bool = False) -> CheckedOffer:
    """Check the folder of an offer.

    :param issued: SHA-256 of the buyer's own rules; empty if they are not at hand
    :param final: whether commitments must be there
    :raises UsageError: if it has no rules or passes that can be read
    """
    offer = open_offer(folder)
    found = check_offer(offer, official, issued)
    kept = None
    if final or (folder / COMMITMENTS).exists():
        try:
            kept = read_commitments(folder)
        except UsageError as error:
            why = str(error).removeprefix(f"{folder / COMMITMENTS}: ")
            found.append(Violation(Code.FORM_MISSING, COMMITMENTS, why).inside(folder))
    if kept:
        if kept.rules != offer.stored.header.rules:
            found.append(Violation(Code.RULES_OTHER, COMMITMENTS, "was typed for other rules"))
        found += check_commitments(offer, kept)
        if final:
            found += check_form(offer, kept)
    if final:
        found += check_sealed(offer)
    return CheckedOffer(offer, None, kept, tuple(found))


def check_sealed(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that an offer was sealed after it was measured, as far as it tells when."""
    try:
        told = read_sealed(offer.stored.folder)
    except UsageError as error:
        yield Violation(Code.SEAL_BROKEN, SEALED, str(error)).inside(offer.stored.folder)
        return
    last = max((each.ended_utc for each in offer.stored.passes), default="")
    if told and told < last:
        yield Violation(Code.CLOCK_BACKWARDS, SEALED, f"sealed {told}, and measured until {last}")
    if told and parse_utc(told) > parse_utc(utc_now()) + timedelta(days=1):
        yield Violation(Code.CLOCK_BACKWARDS, SEALED, f"sealed {told}, which is to come")


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack an archive into a folder that goes away afterwards.

    :raises UsageError: if it is none; what is refused of the folder names the archive in its place
    """
    with TemporaryDirectory(prefix="plumbline-offer-") as scratch:
        unpack_archive(path, Path(scratch))
        try:
            yield Path(scratch)
        except UsageError as error:
            raise UsageError(str(error).replace(scratch, str(path))) from None


def check_opened(
    folder: Path, official: OfficialSource, issued: str = "", signers: Path | None = None
) -> CheckedOffer:
    """Check an offer that was handed in and is unpacked. Raises UsageError if it is no offer."""
    sealed = verify_seal(folder, signers, signature.OFFER)
    found = check_folder(folder, official, issued, final=True)
    return replace(found, seal=sealed, violations=(*sealed.violations, *found.violations))
