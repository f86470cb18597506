"""The folder of an offer: rules, what the bidder tells, every pass with the files that its launches left.

``passes.jsonl`` has a header and a line for each pass, which holds the hash of the line before it: a pass that
is taken out shows. Every figure of an offer is computed from the files below ``sessions``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from postprocess.base import files
from postprocess.base.documents.journal import Journal
from postprocess.base.documents.records import Amount, Count, FileName, Text, parse_record, read_record
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.documents.toml_files import parse_toml
from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc, utc_now
from postprocess.extensions.procurement.rules.rules_data import TOLD, MachineFacts

RULES, TELL, PASSES, SESSIONS = "rules.toml", "offer.toml", "passes.jsonl", "sessions"
COMMITMENTS, PATCHES, SEALED = "commitments.json", "patches", "sealed.json"
SCHEMA = 1
#: What each key of ``offer.toml`` means.
MEANINGS = {
    "offeror": "who offers",
    "contact": "whom to ask",
    "system": "the machine: its nodes and processors",
    "interconnect": "the network between its nodes",
    "link_gbit_per_s": "of all links of a node together, in one direction; above 0, of a single node, too",
    "memory_gbyte_per_s": "what all memory of a node delivers together, by its data sheet: no value beats it",
    "firmware": "of nodes and network, with versions",
}
#: Folders of a session that an offer keeps.
KEPT = ("plan", "raw", "programs", "spack")


@dataclass(frozen=True)
class OfferHeader:
    """The first line of ``passes.jsonl``."""

    schema: Count
    rules: Text  #: SHA-256 of the rules
    site: Text
    partition: Text
    started_utc: Text
    plumbline: Text  #: version


@dataclass(frozen=True)
class OfferPass:
    """One pass over the rules: each of its cases was launched once."""

    number: Count
    previous: str  #: SHA-256 of the line before
    session: FileName
    category: Text
    machine: MachineFacts
    began_utc: Text
    ended_utc: Text
    command: tuple[str, ...]
    set_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: by environment
    firmware: str = ""
    others: Amount | None = None  #: share of the machine that other processes used meanwhile
    notes: tuple[str, ...] = ()  #: on clock and data


@dataclass(frozen=True)
class Patch:
    """A change of a program's source that the bidder names."""

    program: Text
    file: FileName  #: in ``patches``
    text: Text  #: what it does


@dataclass(frozen=True)
class ToldFacts:
    """``offer.toml``: what the bidder tells."""

    offeror: str = ""
    contact: str = ""
    system: str = ""
    interconnect: str = ""
    firmware: str = ""
    link_gbit_per_s: Amount = 0.0  #: of all links of a node together, in one direction
    memory_gbyte_per_s: Amount = 0.0  #: of a node
    patch: tuple[Patch, ...] = ()


@dataclass(frozen=True)
class StoredOffer:
    """A folder as far as it was measured."""

    folder: Path
    header: OfferHeader
    passes: tuple[OfferPass, ...]
    broken: tuple[int, ...] = ()  #: passes whose line before is another one


def locate_session(folder: Path, session: str) -> Path:
    """Locate what an offer keeps of a session."""
    return folder / SESSIONS / session


def open_journal(folder: Path) -> Journal:
    """Return the journal of an offer."""
    missing = "./plumbline offer run measures one"
    return Journal(folder / PASSES, "choose another folder", missing, "measure again")


def write_header(folder: Path, header: OfferHeader) -> None:
    """Begin ``passes.jsonl``.

    :raises UsageError: if it cannot be written
    """
    open_journal(folder).append(asdict(header))


def append_pass(folder: Path, done: OfferPass) -> None:
    """Add a pass, whole.

    :raises UsageError: if it cannot be written
    """
    open_journal(folder).append(asdict(done))


def hash_last_line(folder: Path) -> str:
    """Return the SHA-256 of the last line of ``passes.jsonl``."""
    return hash_line(files.read_regular(folder / PASSES).splitlines()[-1])


def hash_line(line: bytes) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line).hexdigest()


def read_offer(folder: Path) -> StoredOffer:
    """Read the passes of an offer.

    :raises UsageError: if there are none, or a line is damaged
    """
    with open_journal(folder).reading():
        lines = files.read_regular(folder / PASSES).splitlines()
        first, *others = (parse_json(line.decode()) for line in lines)
        header = parse_record(first, OfferHeader, exact=True)
        passes = tuple(parse_record(other, OfferPass, exact=True) for other in others)
        for text in (text for each in passes for text in (each.began_utc, each.ended_utc)):
            parse_utc(text)
    codes = [hash_line(line) for line in lines]
    broken = tuple(
        number
        for number, each in enumerate(passes, 1)
        if each.previous != codes[number - 1] or each.number != number
    )
    return StoredOffer(folder, header, passes, broken)


def read_told(folder: Path) -> ToldFacts:
    """Read what the bidder tells.

    :raises UsageError: if the file is missing or has a fault
    """
    path = folder / TELL
    try:
        return parse_record(parse_toml(files.read_text(path)), ToldFacts, exact=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; ./plumbline offer run writes one") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}; mend it") from None


@dataclass(frozen=True)
class SealedMoment:
    """``sealed.json``: when an offer was sealed."""

    schema: Count
    sealed_utc: Text


def write_sealed(folder: Path) -> None:
    """Write down that an offer is sealed now. OSError as met."""
    text = json.dumps(asdict(SealedMoment(SCHEMA, utc_now())))
    files.replace_files({folder / SEALED: f"{text}\n".encode()})


def read_sealed(folder: Path) -> str:
    """Read when an offer was sealed; empty if it does not tell.

    :raises UsageError: if the file is damaged
    """
    path = folder / SEALED
    if not path.exists():
        return ""
    try:
        found = read_record(path, SealedMoment).sealed_utc
        parse_utc(found)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}; ./plumbline offer seal writes it") from None
    return found


def copy_told(source: Path, target: Path) -> None:
    """Copy what the bidder tells from one folder to another, with the patches that are there.

    OSError as met.
    """
    patches = sorted(path for path in (source / PATCHES).glob("*") if path.is_file())
    copied = (source / TELL, *patches)
    files.replace_files({target / path.relative_to(source): files.read_regular(path) for path in copied})


def format_told_template() -> str:
    """Format an ``offer.toml`` in which nothing is told yet."""
    lines = ["# What the bidder tells. The rules say in tell which of it is asked for."]
    for name, number in TOLD.items():
        lines.append(f"{name} = {0.0 if number else chr(34) * 2}  # {MEANINGS[name]}")
    lines += ["", "# For each change of a program's source:", "# [[patch]]", '# program = "osu"']
    lines += ['# file = "osu.patch"  # in patches/', '# text = "what it does"', ""]
    return "\n".join(lines)
