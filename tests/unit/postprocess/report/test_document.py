"""A document: hostile text stays text, a page asks for nothing, and all files are written or none."""

import errno
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from markupsafe import Markup

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import TextTable
from postprocess.report.document import (
    BESIDE,
    Commands,
    Document,
    Drawing,
    Group,
    Legend,
    Lines,
    Linked,
    Links,
    Named,
    Phrase,
    Picture,
    Role,
    Section,
    Tone,
    Toned,
    css_key,
    table_section,
)
from postprocess.report.rendering import render_html, render_markdown, render_terminal, write_document

HOSTILE = "<script>alert(1)</script> | `x` <img src=http://a> \x1b[31m {{ 7 * 7 }}"
TABLE = TextTable(HOSTILE, (HOSTILE, ""), (HOSTILE,), ((HOSTILE, "-", Toned(HOSTILE, Tone.BAD)),), (HOSTILE,))
DRAWN = Picture(lambda: "<svg></svg>", HOSTILE, (HOSTILE,), HOSTILE)
BLOCKS = (
    *(Lines(role, (HOSTILE, "a line")) for role in Role),
    *(TABLE, DRAWN, Commands(HOSTILE, (HOSTILE,)), Legend([(css_key("begin"), HOSTILE)])),
    Links(HOSTILE, [Linked(HOSTILE, HOSTILE, Tone.BAD, HOSTILE)]),
    Lines(Role.ITEM, [Phrase(HOSTILE, Named(HOSTILE, HOSTILE, HOSTILE, "#here"))]),
    Group(Toned(HOSTILE, Tone.BAD), Named(HOSTILE, HOSTILE, HOSTILE), why=HOSTILE),
    Group(Toned(HOSTILE, Tone.BAD), HOSTILE, HOSTILE, [(Named(HOSTILE, HOSTILE, HOSTILE), HOSTILE)], HOSTILE),
    Drawing(lambda: Markup("<svg></svg>"), [TABLE]),
)
HOSTILE_DOCUMENT = Document(
    HOSTILE,
    (HOSTILE, HOSTILE),
    Tone.GOOD,
    HOSTILE,
    (HOSTILE,),
    (
        Section(HOSTILE, BLOCKS, mark=Toned(HOSTILE, Tone.BAD)),
        Section(HOSTILE, BLOCKS, folded=True, new_page=True),
        table_section(TABLE),
    ),
    (HOSTILE,),
    {"said": HOSTILE},
    [HOSTILE],
    styles=("links.css",),
    landscape=True,
    counts=[Linked(HOSTILE, "#here", Tone.BAD, HOSTILE), Linked(HOSTILE, "", Tone.GOOD)],
)


def test_hostile_text_is_shown_and_does_nothing() -> None:
    html = render_html(HOSTILE_DOCUMENT)
    assert "<script" not in html and "<img" not in html and "\x1b" not in html and "{{ 7 * 7 }}" in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 40
    markdown = render_markdown(HOSTILE_DOCUMENT)
    code = re.compile(r"^(`{3,})\n.*?^\1$", re.MULTILINE | re.DOTALL)
    assert len(code.findall(markdown)) == 2
    assert "<" not in code.sub("", markdown) and "\x1b" not in markdown
    assert not re.search(r"(?<!\\)`", code.sub("", markdown)) and "http://" not in code.sub("", markdown)


def test_the_command_of_a_group_is_code_that_it_cannot_end() -> None:
    group = Group(
        Toned("regressed", Tone.BAD), Named("the key", "bcast 8 B", "here"), command="run `x` ``` <b>"
    )
    told = replace(HOSTILE_DOCUMENT, sections=[Section("", [group])])
    assert "  - again: ```` run `x` ``` <b> ````\n" in render_markdown(told)
    assert "**regressed** the key\n" in render_markdown(told) and "<b>bcast 8 B</b>" in render_html(told)
    assert "regressed the key\n" in render_terminal(told)


def test_a_terminal_has_what_markdown_has_and_no_control_characters() -> None:
    alone = Section("pictures alone", [replace(DRAWN, captions=())])
    told = replace(HOSTILE_DOCUMENT, sections=[*HOSTILE_DOCUMENT.sections, alone])
    text, markdown = render_terminal(told), render_markdown(told)
    assert "\x1b" not in text and "pictures alone" not in text
    assert text.count("x1b") == markdown.count("x1b")


def test_a_page_asks_for_nothing_and_needs_no_script() -> None:
    html = render_html(replace(HOSTILE_DOCUMENT, facts=[BESIDE]))
    assert "default-src 'none'" in html and not re.search(r"<(script|link|iframe|object|form)\b", html)
    own = quote(HOSTILE, safe="/#")  # whatever it says, it leads to a file beside the page
    assert set(re.findall(r'(?:src|href|action)="([^"]*)"', html)) == {"report.html", "#here", own}
    assert not re.search(r"url\(|@import", html)


def test_a_picture_without_captions_tells_its_subject() -> None:
    drawn = Picture(lambda: "<svg></svg>", subject="bcast of 8 B")
    assert "bcast of 8 B" in render_html(replace(HOSTILE_DOCUMENT, sections=[Section("", [drawn])]))


def test_what_has_nothing_to_show_is_left_out() -> None:
    empty = (Lines(Role.ITEM, ()), TextTable("none", ("a",), (), ()))
    told = replace(HOSTILE_DOCUMENT, sections=(Section("nothing here", empty), Section("", [*empty, DRAWN])))
    for text in (render_html(told), render_markdown(told)):
        assert "nothing here" not in text and "none</h4>" not in text and "**none**" not in text


def test_all_files_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "some.html"
    write_document(HOSTILE_DOCUMENT, page)
    write_document(replace(HOSTILE_DOCUMENT, data=None), tmp_path / "other.html")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["other.html", "other.md", "some.html", "some.json", "some.md"]
    write = files._write

    def fill_disk(path: Path, data: bytes, target: Path, durable: bool) -> None:
        if target.suffix == ".json":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        write(path, data, target, durable)

    monkeypatch.setattr(files, "_write", fill_disk)
    with pytest.raises(UsageError, match=r"some\.json: cannot be written: No space left"):
        write_document(replace(HOSTILE_DOCUMENT, headline="another"), page)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
