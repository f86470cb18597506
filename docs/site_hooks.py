"""Let mkdocs show pages that lie in a repository: what is outside of the site is named, and not linked."""

import posixpath
import re
from types import SimpleNamespace

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s:]+)\)")
LEFT_OUT = ("changelog.d", "completion")  #: of mkdocs.yml


def on_page_markdown(markdown: str, page: SimpleNamespace, **_: object) -> str:
    """Return a page whose links out of the site are the text that they stand for, with the path."""

    def replace_link(match: re.Match[str]) -> str:
        text, target = match.groups()
        folder = posixpath.dirname(page.file.src_uri)
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        inside = path.startswith("docs/") and not path.removeprefix("docs/").startswith(LEFT_OUT)
        return match[0] if inside or target.startswith("#") else f"{text} (`{path}`)"

    return LINK.sub(replace_link, markdown)
