"""What the pages of a session or an analysis say, independent of the format: one document, built once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import quote

from markupsafe import Markup

from postprocess.base.formats import TextTable
from site_configs.mpi.exchange import BINDINGS
from site_configs.programs.program import PROGRAMS

#: What stands beside a tone, or for it where there is no colour.
STAMPS = {"good": "✓", "fair": "?", "bad": "✗", "plain": ""}


class Tone(str, Enum):
    """What a colour of a page says."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"
    PLAIN = "plain"  #: nothing was judged

    def __str__(self) -> str:
        return self.value


OwnToned = TypeVar("OwnToned", bound="Toned")


class Toned(str):
    """Text that has a colour on a page; anywhere else it is text like any other.

    The tone is one of ``Tone``, or a class of the page's own style sheet.
    """

    tone: str

    def __new__(cls: type[OwnToned], text: str, tone: str) -> OwnToned:
        made = super().__new__(cls, text)
        made.tone = tone
        return made


class Linked(Toned):
    """Text that leads to a page beside this one, or to a place on it; elsewhere it is text like any other."""

    address: str
    told: str  #: what is said where the pointer rests

    def __new__(cls, text: str, address: str, tone: str = Tone.PLAIN, told: str = "") -> Linked:  # type: ignore[override]
        made: Linked = super().__new__(cls, text, tone)
        made.address, made.told = quote(address, safe="/#"), told
        return made


class Named(Linked):
    """The key by which programs find something; a page shows its name, and where it is, in the key's place."""

    name: str
    where: str

    def __new__(cls, key: str, name: str, where: str, address: str = "") -> Named:  # type: ignore[override]
        made: Named = super().__new__(cls, key, address)  # type: ignore[assignment]
        made.name, made.where = name, where
        return made


class Phrase(str):
    """Text of parts, of which some lead elsewhere."""

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Phrase:
        made = super().__new__(cls, "".join(parts))
        made.parts = parts
        return made


#: What the report of the session has, whose folder the page is in.
BESIDE = Linked("launches, MPIs and all values: report.html", "report.html")


class Role(Enum):
    """What lines are for, which decides how a page shows them: by the class of its style sheet."""

    CAVEAT = "note"  #: in an amber box each
    FINDING = "finding"  #: a list in bold type
    REMARK = "remark"  #: a paragraph each
    ITEM = "item"  #: a list
    DETAIL = "small"  #: a list in small type

    @property
    def is_list(self) -> bool:
        """Whether a page shows the lines as a list."""
        return self in (Role.FINDING, Role.ITEM, Role.DETAIL)


@dataclass(frozen=True)
class Lines:
    """Sentences, each in a line of its own."""

    role: Role
    lines: Sequence[str]
    marks: Sequence[Toned] = ()  #: a word before each line; empty if the lines have none

    @property
    def marked(self) -> list[str]:
        """The lines with their marks, as plain text."""
        if not self.marks:
            return [*self.lines]
        return [f"{mark}: {line}" for mark, line in zip(self.marks, self.lines, strict=True)]


@dataclass(frozen=True)
class Picture:
    """A picture, which only HTML shows, and what is said of it."""

    draw: Callable[[], str]  #: returns one ``<svg>`` element, finished
    title: str = ""  #: above it
    captions: Sequence[str] = ()  #: below it, if it has a subject
    subject: str = ""  #: what it and the captions are about: in small type below them
    width: int = 390  #: in CSS pixels, at most; 0 for the picture's own, however wide


@dataclass(frozen=True)
class Legend:
    """What the signs in pictures mean: a sign, which may be empty, and its meaning. Only HTML shows it."""

    keys: Sequence[tuple[Markup, str]]
    title: str = ""  #: above it: what the pictures behind it show


@dataclass(frozen=True)
class Drawing:
    """Pictures that a template of its own arranges over the whole width, which only HTML shows."""

    draw: Callable[[], Markup]
    instead: Sequence[TextTable] = ()  #: what is shown where there are no pictures


@dataclass(frozen=True)
class Links:
    """Short links side by side, coloured by their tones, below their title. Only HTML shows them."""

    title: str
    links: Sequence[Linked]


@dataclass(frozen=True)
class Group:
    """Equal rows: of one thing, or of several, the same is said, and the same is to be done."""

    mark: Toned  #: the word for all of them
    title: str  #: the one, or how many there are
    where: str = ""  #: all of them are
    rows: Sequence[tuple[Named, str]] = ()  #: of several: each with its numbers
    left: str = ""  #: that more are not listed; empty if all are
    why: str = ""
    command: str = ""


@dataclass(frozen=True)
class Commands:
    """Commands that are there to be copied, below their title."""

    title: str
    commands: Sequence[str]
    folded: bool = True  #: whether only the title is seen at first


Block = Lines | TextTable | Picture | Legend | Drawing | Links | Group | Commands


@dataclass(frozen=True)
class Section:
    """A part with a title, which may be empty. Tables and pictures stand side by side where there is room."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False  #: whether only its title is seen at first
    mark: Toned | None = None  #: a word before the title
    new_page: bool = False  #: whether it begins a page in print
    printed: str | None = None  #: what a printed page has in its place, which may be nothing
    half: bool = False  #: whether a page shows it beside the next one, or the one before it, that is such
    only_page: bool = False  #: whether Markdown leaves it out

    @property
    def heading(self) -> str:
        """The title with its mark, as plain text."""
        return f"{self.mark} {self.title}".strip() if self.mark else self.title


@dataclass(frozen=True)
class Document:
    """All that the pages of an analysis say. What has nothing to show is left out."""

    kind: str  #: of what it is: the name of a command
    where: Sequence[str]  #: of which site, session or versions
    tone: Tone
    headline: str
    facts: Sequence[str]  #: below the headline
    sections: Sequence[Section]
    how_to_read: Sequence[str]  #: at the end
    data: Mapping[str, Any] | None = None  #: the same for programs
    failures: Sequence[str] = ()  #: what spoils it, above the facts
    styles: Sequence[str] = ()  #: further style sheets among the templates
    landscape: bool = False  #: whether it is printed on sheets that lie
    counts: Sequence[Linked] = ()  #: behind the headline
    script: str = ""  #: among the templates; the page shows everything without it


def table_section(table: TextTable, new_page: bool = False) -> Section:
    """Return a section of one table, under the table's title."""
    return Section(table.title, [replace(table, title="")], new_page=new_page)


def css_key(name: str) -> Markup:
    """Return a sign of a legend that a class of the style sheet draws."""
    return Markup('<i class="{}"></i>').format(name)


JUDGED = (
    "A launch of {} says its steady time, the mean of the fastest quarter of its trials, each the time of the "
    "slowest process, without the first trial."
)
JUDGED_OTHER = "A launch of {} says the judged column of its table."
JUDGED_LANGUAGE = (
    "A launch of bindings says the median of its rounds: of C its time, of another language its time over that "
    "in C in the same round, as 1.5 x C. What slows both as much moves the case of C alone."
)


def describe_judged(programs: Iterable[str]) -> str:
    """Describe by what a launch of the programs that were measured is judged."""
    known = {*programs}
    measured = [name for name in PROGRAMS if name in known]
    own = [name for name in measured if PROGRAMS[name].own]
    others = [name.upper() for name in measured if not PROGRAMS[name].own and name != BINDINGS]
    said = (
        (JUDGED, own),
        (JUDGED_OTHER, others),
        (JUDGED_LANGUAGE, [BINDINGS] if BINDINGS in measured else []),
    )
    return " ".join(words.format(" or ".join(names)) for words, names in said if names)


#: Of an analysis that judges something else.
NOT_STEADY = "not the steady time, by which nights and comparisons judge"
