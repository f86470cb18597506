"""Every link between the pages leads to a file that is there, and to a heading in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("", "docs", "docs/decisions", "suite", "spack_envs", "reference_data", "reference_data/historical")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def prose_of(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text())


def anchors_of(page: Path) -> set[str]:
    """The names by which headings are linked to: lower case, letters, digits, hyphens."""
    heads = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in LINK.findall(prose_of(page)):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)
    assert not wrong


def test_index_names_every_page() -> None:
    linked = set(LINK.findall((ROOT / "docs" / "README.md").read_text()))
    assert ({page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}) <= linked
