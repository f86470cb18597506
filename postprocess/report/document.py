"""The pages of an analysis: one document, built once, written safely as HTML, Markdown and JSON."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from postprocess.base import files, formats, sanitize
from postprocess.base.errors import UsageError
from postprocess.base.formats import DASH, TextTable, render_markdown_table
from postprocess.base.sanitize import choose_fence, escape_markdown, sanitize_line
from postprocess.model.groups import describe_reason
from postprocess.model.verdict import Verdict, is_healthy
from site_configs.mpi.exchange import BINDINGS

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
#: What stands beside a tone, or for it where there is no colour.
STAMPS = {"good": "✓", "fair": "?", "bad": "✗", "plain": ""}


@dataclass(frozen=True)
class PageScript:
    """The script of a page, and the hash by which the page's policy allows it and no other."""

    text: Markup
    hash: str


def read_script(name: str) -> PageScript:
    """Read a script of the templates' folder, which is ours and printed as it is."""
    text = files.read_text(TEMPLATES / name)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return PageScript(Markup(text), f"sha256-{digest}")


def render_html_template(template: str, context: Mapping[str, Any], **pictures: Callable[..., str]) -> str:
    """Render a page, with what it prints escaped. ``pictures`` are its filters that draw SVG."""
    environment = _open_templates()
    environment.filters.update({name: _finished(draw) for name, draw in pictures.items()})
    return environment.get_template(template).render(context)


def render_fragment(template: str, context: Mapping[str, Any], **pictures: Callable[..., str]) -> Markup:
    """Render a part of a page, for a ``Drawing``."""
    return Markup(render_html_template(template, context, **pictures))


def write_pages(pages: Mapping[Path, str]) -> None:
    """Write pages that belong together, whole or not at all. Raises UsageError if they cannot be written."""
    try:
        files.replace_files({path: text.encode("utf-8") for path, text in pages.items()})
    except OSError as error:
        problem = f"{error.filename or next(iter(pages)).parent}: cannot be written: {error.strerror}"
        raise UsageError(f"{problem}; make room or change its rights") from None


@cache
def _open_templates() -> jinja2.Environment:
    """Open the templates, each compiled once in a process; what draws pictures is set for each page."""
    import jinja2  # here: who writes no page does not wait for it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=_as_html,
    )
    environment.globals.update(
        plural=formats.plural,
        percent=_finished(formats.format_percent),
        number=_finished(formats.number),
        quantity=_finished(_quantity),
        band=_finished(formats.format_band),
    )
    environment.filters.update(
        us=_finished(formats.microseconds),
        factor=_finished(formats.factor),
        slowdown=formats.format_slowdown,
        whole=_finished(formats.format_whole),
        size=_finished(formats.size),
        binary_size=_finished(formats.binary_size),
        duration=_finished(formats.duration),
        lines=sanitize.sanitize_lines,
        explain=lambda result: describe_reason([result]),
        stamp=lambda tone: STAMPS[str(tone)],
        sign=lambda word: Verdict(word).sign,
        tone=lambda word, strict: Verdict(word).tone if is_healthy(word, strict) else "bad",
    )
    return environment


def _quantity(value: float | None, unit: str) -> str:
    """Format a quantity with the Greek letter, which a page can show."""
    return formats.quantity(value, unit).replace(" us", " µs")


def _finished(write: Callable[..., str]) -> Callable[..., Markup]:
    """Return a writer whose output is not escaped again."""
    return lambda *values: Markup(write(*values))


def _as_html(value: object) -> object:
    """Return what a template prints, before it is escaped: finished markup as it is, the rest sanitised."""
    return value if isinstance(value, Markup) else sanitize.sanitize_line(value)


LONG = 12  #: letters of a cell, above which it is wrapped where room is scarce
BLANK = ("", DASH)  #: cells that a narrow screen leaves out


class Tone(str, Enum):
    """What a colour of a page says."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"
    PLAIN = "plain"  #: nothing was judged

    def __str__(self) -> str:
        return self.value


class Toned(str):
    """Text that has a colour on a page; anywhere else it is text like any other.

    The tone is one of ``Tone``, or a class of the page's own style sheet.
    """

    tone: str

    def __new__(cls, text: str, tone: str) -> Toned:
        made = super().__new__(cls, text)
        made.tone = tone
        return made


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


@dataclass(frozen=True)
class Drawing:
    """Pictures that a template of its own arranges over the whole width, which only HTML shows."""

    draw: Callable[[], Markup]


@dataclass(frozen=True)
class Commands:
    """Commands that are there to be copied, below their title."""

    title: str
    commands: Sequence[str]
    folded: bool = True  #: whether only the title is seen at first


Block = Lines | TextTable | Picture | Legend | Drawing | Commands


@dataclass(frozen=True)
class Section:
    """A part with a title, which may be empty. Tables and pictures stand side by side where there is room."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False  #: whether only its title is seen at first
    mark: Toned | None = None  #: a word before the title
    new_page: bool = False  #: whether it begins a page in print
    printed: str | None = None  #: what a printed page has in its place, which may be nothing


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
    report: str = ""  #: what the session's report beside it has; empty if there is none
    styles: Sequence[str] = ()  #: further style sheets among the templates
    landscape: bool = False  #: whether it is printed on sheets that lie


def table_section(table: TextTable, new_page: bool = False) -> Section:
    """Return a section of one table, under the table's title."""
    return Section(table.title, [replace(table, title="")], new_page=new_page)


def css_key(name: str) -> Markup:
    """Return a sign of a legend that a class of the style sheet draws."""
    return Markup('<i class="{}"></i>').format(name)


def write_document(document: Document, page: Path) -> Path:
    """Write a document as HTML, as ``.md`` beside it and, if it has data, as ``.json``, which comes last.

    Returns the path of the page.

    :raises UsageError: if they cannot be written
    """
    write_pages(render_pages(document, page))
    return page


def render_pages(document: Document, page: Path) -> dict[Path, str]:
    """Render what ``write_document`` writes: the text of each file by its path."""
    pages = {page: render_html(document), page.with_suffix(".md"): render_markdown(document)}
    if document.data is not None:
        pages[page.with_suffix(".json")] = json.dumps(document.data, indent=1, allow_nan=False) + "\n"
    return pages


def render_html(document: Document) -> str:
    """Render a document as one HTML file that needs nothing but itself."""
    context = {
        "document": document,
        "tone": document.tone,
        "headline": document.headline,
        "sections": drop_empty(document.sections),
    }
    return render_html_template(
        "document.html.j2",
        context,
        drawn=lambda block: block.draw(),
        shape=lambda block: type(block).__name__,
        classes=name_cell_classes,
    )


def name_cell_classes(cell: str, is_number: bool) -> str:
    """Name the classes by which the style sheet shows a cell of a table."""
    classes = {"n": is_number, "long": len(cell) > LONG, "blank": cell in BLANK}
    tone = [str(cell.tone)] if isinstance(cell, Toned) else []
    return " ".join([name for name, holds in classes.items() if holds] + tone)


def render_markdown(document: Document) -> str:
    ending = Section("How to read this", [Lines(Role.ITEM, document.how_to_read)])
    headline = f"{STAMPS[document.tone]} {escape_markdown(document.headline)}".lstrip()
    parts = [
        f"# Plumbline {escape_markdown(document.kind)}: {headline}",
        escape_markdown(" · ".join(document.where)),
        render_block(Lines(Role.ITEM, [*document.failures, *document.facts])),
    ]
    for section in drop_empty([*document.sections, ending]):
        title = f"{section.mark} {section.title}".strip() if section.mark else section.title
        blocks = [text for text in map(render_block, section.blocks) if text]
        parts += [f"## {escape_markdown(title)}"] if title and blocks else []
        for block in blocks:
            if block.startswith("- ") and parts[-1].startswith("- "):
                parts[-1] += f"\n{block}"  # lists that follow each other are one
            else:
                parts.append(block)
    return "\n\n".join(filter(None, parts)) + "\n"


def render_block(block: Block) -> str:
    """Render a block in Markdown; empty if only HTML shows it."""
    if isinstance(block, TextTable):
        title = f"**{escape_markdown(block.title)}**\n\n" if block.title else ""
        return title + render_markdown_table(block).rstrip("\n")
    if isinstance(block, Commands):
        return f"**{escape_markdown(block.title)}**\n\n{render_code_block(block.commands)}"
    lines: Sequence[str] = ()
    if isinstance(block, Lines):
        lines = block.marked
        if block.role is Role.REMARK:
            return "\n\n".join(map(escape_markdown, lines))
    elif isinstance(block, Picture):
        lines = [f"{block.subject}: {caption}" for caption in block.captions]
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)


def render_code_block(commands: Sequence[str]) -> str:
    """Render a Markdown code block of one line each that no line can end."""
    text = "\n".join(map(sanitize_line, commands))
    fence = choose_fence(text)
    return f"{fence}\n{text}\n{fence}"


def drop_empty(sections: Sequence[Section]) -> list[Section]:
    """Drop what has nothing to show: lists without lines, tables without rows, sections of such alone."""
    kept: list[Section] = []
    for section in sections:
        blocks = [
            block
            for block in section.blocks
            if not (
                (isinstance(block, Lines) and not block.lines)
                or (isinstance(block, TextTable) and not block.rows)
            )
        ]
        kept += [replace(section, blocks=blocks)] if blocks else []
    return kept


#: Of a launch.
JUDGED = (
    "A launch of mpicost says its steady time, the mean of the fastest quarter of its trials; one of OSU or "
    "IMB says the judged column of its table."
)
JUDGED_LANGUAGE = (
    "A launch of bindings says the median of its rounds: of C its time, of another language its time over that "
    "in C in the same round, as 1.5 x C. What slows both as much moves the case of C alone."
)


def describe_judged(programs: Iterable[str]) -> str:
    """Describe by what a launch of the programs that were measured is judged."""
    measured = {*programs}
    parts = [JUDGED] if measured != {BINDINGS} else []
    return " ".join([*parts, *([JUDGED_LANGUAGE] if BINDINGS in measured else [])])


#: Of an analysis that judges something else.
NOT_STEADY = "not the steady time, by which nights and comparisons judge"
