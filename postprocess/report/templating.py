"""How pages are made: from templates that print nothing harmful, and written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from postprocess.base import files, formats, sanitize
from postprocess.base.errors import UsageError
from postprocess.model.verdict import Verdict, is_healthy

TEMPLATES = Path(__file__).parent / "templates"
#: What stands beside a tone, or for it where there is no colour.
STAMPS = {"good": "✓", "fair": "?", "bad": "✗"}


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


def write_pages(pages: Mapping[Path, str]) -> None:
    """Write pages that belong together, whole or not at all.

    :raises UsageError: if they cannot be written.
    """
    try:
        files.replace_files({path: text.encode("utf-8") for path, text in pages.items()})
    except OSError as error:
        problem = f"{error.filename or next(iter(pages)).parent}: cannot be written: {error.strerror}"
        raise UsageError(f"{problem}; make room or change its rights") from None


def _open_templates() -> jinja2.Environment:
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
