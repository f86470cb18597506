"""One document for the pages of an analysis: built once, written as HTML, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from markupsafe import Markup

from postprocess.base.formats import DASH
from postprocess.base.sanitize import choose_fence, escape_markdown, sanitize_line
from postprocess.base.text_table import TextTable, render_markdown_table
from postprocess.report import templating

LONG = 12  #: letters of a cell, above which it is wrapped where room is scarce
BLANK = ("", DASH)  #: cells that a narrow screen leaves out


class Tone(str, Enum):
    """What a colour of a page says."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"

    def __str__(self) -> str:
        return self.value


class Toned(str):
    """Text that has a colour on a page; anywhere else it is text like any other."""

    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Toned:
        """Return the text with its tone."""
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
class Commands:
    """Commands that are there to be copied, folded below their title."""

    title: str
    commands: Sequence[str]


Block = Lines | TextTable | Picture | Legend | Commands


@dataclass(frozen=True)
class Section:
    """A part with a title, which may be empty. Tables and pictures stand side by side where there is room."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False  #: whether only its title is seen at first
    mark: Toned | None = None  #: a word before the title
    new_page: bool = False  #: whether it begins a page in print


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
    pages = {page: render_html(document), page.with_suffix(".md"): render_markdown(document)}
    if document.data is not None:
        pages[page.with_suffix(".json")] = json.dumps(document.data, indent=1, allow_nan=False) + "\n"
    templating.write_pages(pages)
    return page


def render_html(document: Document) -> str:
    """Render a document as one HTML file that needs nothing but itself."""
    context = {
        "document": document,
        "tone": document.tone,
        "headline": document.headline,
        "sections": drop_empty(document.sections),
    }
    return templating.render_html_template(
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
    """Render a document in Markdown."""
    ending = Section("How to read this", [Lines(Role.ITEM, document.how_to_read)])
    stamp = templating.STAMPS[document.tone]
    parts = [
        f"# Plumbline {escape_markdown(document.kind)}: {stamp} {escape_markdown(document.headline)}",
        escape_markdown(" · ".join(document.where)),
        render_block(Lines(Role.ITEM, [*document.failures, *document.facts])),
    ]
    for section in drop_empty([*document.sections, ending]):
        title = f"{section.mark} {section.title}".strip() if section.mark else section.title
        parts += [f"## {escape_markdown(title)}"] if title else []
        for block in map(render_block, section.blocks):
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
        lines = block.lines
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
