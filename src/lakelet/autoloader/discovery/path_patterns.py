"""Patterns in source paths and file names: `? * [abc] [a-z] [^a] {ab,cd} {ab,c{de,fh}}` (AL-9).

Strict: a pattern is matched folder by folder, as Spark does it, and takes everything below a folder that it matches.
Lenient: `*` also stands for several folders, and the pattern is the beginning of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lakelet.base.errors import LakeletError

_MAGIC = re.compile(r"[*?\[{]")


def is_pattern(path: str) -> bool:
    """Whether a path has wildcards."""
    return _MAGIC.search(path) is not None


def fixed_folder(path: str) -> str:
    """The folder that stands before the first wildcard of an absolute pattern; of a path without one, the path."""
    match = _MAGIC.search(path)
    return path.rstrip("/") or "/" if match is None else path[: match.start()].rpartition("/")[0] or "/"


def name_pattern(glob: str) -> re.Pattern[str]:
    """A pattern for file names. Match with `fullmatch`."""
    return _compiled_pattern((_regular_expression(item, star="[^/]*") for item in _without_braces(glob)), glob)


class PathPattern:
    """A source path with wildcards: which files it takes, and which folders can hold such files."""

    def __init__(self, path: str, *, strict: bool) -> None:
        patterns = [item.rstrip("/") for item in _without_braces(path)]
        whole = [
            _regular_expression(p, star="[^/]*") + "(?:/.*)?" if strict else _regular_expression(p, star=".*") + ".*" for p in patterns
        ]
        self._files = _compiled_pattern(whole, path)
        self._folders = _compiled_pattern((_folders_on_the_way(p.split("/"), strict) for p in patterns), path)

    def takes(self, path: str) -> bool:
        """Whether a file belongs to the source."""
        return self._files.fullmatch(path) is not None

    def may_hold(self, folder: str) -> bool:
        """Whether files below a folder can belong to the source."""
        return self._folders.fullmatch(folder) is not None


def _compiled_pattern(items: Iterable[str], glob: str) -> re.Pattern[str]:
    try:
        return re.compile("|".join(f"(?:{item})" for item in items), re.DOTALL)
    except re.error as error:
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"{glob!r} is not a pattern for paths", why=str(error)) from None


def _folders_on_the_way(segments: list[str], strict: bool) -> str:
    """A regular expression for the folders on the way to what a pattern takes, and for all below."""
    first, *others = segments
    last = not others
    if not strict and "*" in first:
        return ".*"
    here = _regular_expression(first, star="[^/]*") + ("(?:/.*)?" if strict else ".*") if last else _regular_expression(first, star="[^/]*")
    return here if last else f"{here}(?:/{_folders_on_the_way(others, strict)})?"


def _without_braces(glob: str) -> Iterator[str]:
    """The patterns without braces that a pattern with braces expands to."""
    opened = _outermost_braces(glob)
    if opened is None:
        yield glob
        return
    start, commas, end = opened
    edges = [start, *commas, end]
    for left, right in pairwise(edges):
        yield from _without_braces(glob[:start] + glob[left + 1 : right] + glob[end + 1 :])


def _outermost_braces(glob: str) -> tuple[int, list[int], int] | None:
    """Where the first pair of braces opens and closes, and the commas directly inside; None when there is no pair."""
    start, depth = -1, 0
    commas: list[int] = []
    for at, char in enumerate(glob):
        if char == "{":
            start, depth = (at, 1) if depth == 0 else (start, depth + 1)
        elif char == "," and depth == 1:
            commas.append(at)
        elif char == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                return start, commas, at
    return None


def _regular_expression(glob: str, *, star: str) -> str:
    """A pattern without braces as a regular expression. A bracket that is never closed stands for itself."""
    found, at = "", 0
    while at < len(glob):
        char = glob[at]
        end = glob.find("]", at + 2) if char == "[" else -1
        if end > 0:
            inside = glob[at + 1 : end]
            negated = inside[0] in "^!"
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
            found += f"[^/{members}]" if negated else f"(?!/)[{members}]"
            at = end
        else:
            found += star if char == "*" else "[^/]" if char == "?" else re.escape(char)
        at += 1
    return found


__all__ = ["PathPattern", "fixed_folder", "is_pattern", "name_pattern"]
