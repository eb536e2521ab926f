"""The lines of source files that define datasets, as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lakelet.base.redaction import redacted
from lakelet.storage.eventlog.summaries import Source

LINES = 120
"""Number of lines of a file to show, beginning a few before the definition."""
_BEFORE = 3


@dataclass(frozen=True)
class SourceText:
    """Lines of a file; `first`: the number of the first one."""

    file: str
    line: int
    first: int
    lines: tuple[str, ...]


class SourceTexts:
    """Reads source files below one folder: an event log from elsewhere must not bring other files of this machine onto a page."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lines = lru_cache(maxsize=None)(self._read)

    def text(self, source: Source | None) -> SourceText | None:
        """The lines around a definition; without lines where the file is gone, no text or outside of the folder."""
        if source is None:
            return None
        lines = self._lines(source.file)
        first = max(1, source.line - _BEFORE)
        return SourceText(source.file, source.line, first, lines[first - 1 : first - 1 + LINES])

    def _read(self, file: str) -> tuple[str, ...]:
        path = (self._root / file).resolve()
        if not path.is_relative_to(self._root) or path.suffix.lower() not in (".py", ".sql", ".ipynb", ".r", ".scala"):
            return ()
        try:
            return tuple(redacted(path.read_text(encoding="utf-8")).splitlines())
        except (OSError, UnicodeDecodeError, ValueError):
            return ()
