"""What mkdocs asks while it builds the site (`make docs`): the pages that lie outside `docs/`, and links that lead out of it.

README.md is the first page; CONTRIBUTING.md, CHANGELOG.md and the READMEs of the examples are pages too. A link to code becomes the path
of the code, since the site holds none of it. Mermaid charts become SVG: the theme would load a library for them from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.docs_charts import drawn

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES |= {f"examples/{page.parent.name}/README.md": f"examples/{page.parent.name}.md" for page in sorted(ROOT.glob("examples/*/README.md"))}
_LINK = re.compile(r"!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_CHART = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs/`."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make the page's links those of the site, and draw its charts."""
    sources = {place: source for source, place in PAGES.items()}
    path = page.file.src_uri
    text = linked(markdown, sources.get(path, f"docs/{path}"))
    return _CHART.sub(lambda chart: f"<div>\n{drawn(chart[1])}\n</div>", text)


def linked(markdown: str, source: str) -> str:
    """The page's text with links that are right in the site. `source`: its path in the repository, with `/`."""
    page = _site_path(source)

    def link(match: re.Match[str]) -> str:
        text, target = match["text"], match["target"]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, mark, section = target.partition("#")
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        found = _site_path(inside) or _site_path(f"{inside}/README.md")
        if found is None or page is None:
            return text if inside in text else f"{text} (`{inside}`)"
        start = "!" if match[0].startswith("!") else ""
        return f"{start}[{text}]({posixpath.relpath(found, posixpath.dirname(page) or '.')}{mark}{section})"

    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in _FENCED.split(markdown))


def _site_path(source: str) -> str | None:
    """The path in the site of a file of the repository; None if the site does not have it."""
    if source in PAGES:
        return PAGES[source]
    return source.removeprefix("docs/") if source.startswith("docs/") and (ROOT / source).is_file() else None
