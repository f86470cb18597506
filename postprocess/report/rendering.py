"""Render documents as HTML, Markdown and plain text, and write them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from postprocess.base import files, formats, sanitize
from postprocess.base.errors import UsageError
from postprocess.base.formats import DASH, INDENT, TextTable, render_markdown_table, render_text, wrap_all
from postprocess.base.sanitize import choose_fence, escape_markdown, sanitize_line
from postprocess.model.groups import describe_reason
from postprocess.model.verdict import Verdict
from postprocess.report.document import (
    STAMPS,
    Block,
    Commands,
    Document,
    Drawing,
    Group,
    Lines,
    Picture,
    Role,
    Section,
    Toned,
)

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"


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
    environment.globals.update(plural=formats.plural, band=_finished(formats.format_band))
    environment.filters.update(
        us=_finished(formats.microseconds),
        whole=_finished(formats.format_whole),
        explain=lambda result: describe_reason([result]),
        stamp=lambda tone: STAMPS[str(tone)],
        sign=lambda word: Verdict(word).sign,
    )
    return environment


def _finished(write: Callable[..., str]) -> Callable[..., Markup]:
    """Return a writer whose output is not escaped again."""
    return lambda *values: Markup(write(*values))


def _as_html(value: object) -> object:
    """Return what a template prints, before it is escaped: finished markup as it is, the rest sanitised."""
    return value if isinstance(value, Markup) else sanitize.sanitize_line(value)


LONG = 12  #: letters of a cell, above which it is wrapped where room is scarce
BLANK = ("", DASH)  #: cells that a narrow screen leaves out


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
        "sections": drop_empty(document.sections),
        **({"script": read_script(document.script)} if document.script else {}),
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
        render_block(Lines(Role.ITEM, _list_head(document))),
    ]
    for section in _list_text_sections(document, ending):
        blocks = [text for text in map(render_block, section.blocks) if text]
        parts += [f"## {escape_markdown(section.heading)}"] if section.heading and blocks else []
        for block in blocks:
            if block.startswith("- ") and parts[-1].startswith("- "):
                parts[-1] += f"\n{block}"  # lists that follow each other are one
            else:
                parts.append(block)
    return "\n\n".join(filter(None, parts)) + "\n"


def render_terminal(document: Document) -> str:
    """Render a document as a terminal gets it: whole rows of tables, wrapped sentences, and no pictures."""
    headline = f"{STAMPS[document.tone]} {document.headline}".lstrip()
    where = " · ".join([document.kind, *document.where])
    ending = Section("", [Lines(Role.ITEM, document.how_to_read)])
    parts = [_wrap_lines([headline, where, *_list_head(document)])]
    for section in _list_text_sections(document, ending):
        blocks = [text for text in map(_render_terminal_block, section.blocks) if text]
        title = sanitize_line(section.heading)
        parts += [f"{title}\n{'=' * len(title)}\n"] if title and blocks else []
        parts += blocks
    return "\n".join(parts)


def _list_head(document: Document) -> list[str]:
    """List the lines below the headline."""
    counts = ", ".join(document.counts)
    return [*document.failures, *([counts] if counts else []), *document.facts]


def _list_text_sections(document: Document, ending: Section) -> list[Section]:
    """List the sections of a document without pictures."""
    return drop_empty([*(section for section in document.sections if not section.only_page), ending])


def _list_group_lines(group: Group) -> list[str]:
    """List the cases of a group and what is said of them all."""
    rows = [": ".join(filter(None, row)) for row in group.rows]
    return [*filter(None, [*rows, group.left, f"why: {group.why}" if group.why else ""])]


def _render_terminal_block(block: Block) -> str:
    if isinstance(block, TextTable):
        return render_text(block)
    if isinstance(block, Commands):
        commands = "".join(f"{INDENT}{sanitize_line(command)}\n" for command in block.commands)
        return _wrap_lines([block.title]) + commands
    if isinstance(block, Drawing):
        return "\n".join(map(render_text, block.instead))
    if isinstance(block, Group):
        return _render_terminal_group(block)
    return "\n".join(_wrap_lines([line]) for line in _list_sentences(block))


def _render_terminal_group(group: Group) -> str:
    head = ": ".join(filter(None, [f"{group.mark} {group.title}", group.where]))
    below = "".join(f"{line}\n" for line in wrap_all(_list_group_lines(group), INDENT))
    again = f"{INDENT}again: {sanitize_line(group.command)}\n" if group.command else ""
    return _wrap_lines([head]) + below + again


def _list_sentences(block: Block) -> list[str]:
    """List what lines say, or is said of a picture, in plain text."""
    if isinstance(block, Picture):
        return [f"{block.subject}: {caption}" for caption in block.captions]
    return block.marked if isinstance(block, Lines) else []


def _wrap_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in wrap_all(lines))


def render_block(block: Block) -> str:
    """Render a block in Markdown; empty if only HTML shows it."""
    if isinstance(block, TextTable):
        title = f"**{escape_markdown(block.title)}**\n\n" if block.title else ""
        return title + render_markdown_table(block).rstrip("\n")
    if isinstance(block, Commands):
        return f"**{escape_markdown(block.title)}**\n\n{render_code_block(block.commands)}"
    if isinstance(block, Drawing):
        return "\n\n".join(map(render_block, block.instead))
    if isinstance(block, Group):
        return render_group(block)
    lines = [*map(escape_markdown, _list_sentences(block))]
    if isinstance(block, Lines) and block.role is Role.REMARK:
        return "\n\n".join(lines)
    return "\n".join(f"- {line}" for line in lines)


def render_group(group: Group) -> str:
    """Render a group as an item of a list, with what is said of it in a list below it."""
    lines = [f"  - {escape_markdown(line)}" for line in _list_group_lines(group)]
    if group.command:
        text = sanitize_line(group.command)
        ticks = choose_fence(text)
        lines.append(f"  - again: {ticks} {text} {ticks}" if "`" in text else f"  - again: `{text}`")
    head = ": ".join(filter(None, [group.title, group.where]))
    return "\n".join([f"- **{escape_markdown(group.mark)}** {escape_markdown(head)}", *lines])


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
