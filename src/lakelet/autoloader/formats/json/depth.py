"""How deep JSON lines are nested: pyarrow's parser takes minutes for thousands of levels, and more of them end its process."""

from __future__ import annotations

DEEPEST_LINE = 500
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_shallow(lines: bytes) -> bool:
    """Whether surely no line is nested more than `DEEPEST_LINE` levels deep.

    Brackets inside texts count as well, so the answer may be no for a line that is shallow.
    """
    find = lines.find
    if -1 not in [find(b"\n", at, at + DEEPEST_LINE) for at in range(0, len(lines) - DEEPEST_LINE, DEEPEST_LINE)]:
        return True  # every line is too short: a level takes two bytes
    return all(_is_shallow_line(line) for line in lines.split(b"\n") if len(line) > 2 * DEEPEST_LINE)


def _is_shallow_line(line: bytes) -> bool:
    left = line.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(DEEPEST_LINE):
        if len(left) <= 2 * DEEPEST_LINE:
            return True
        inner = left.replace(b"{}", b"").replace(b"[]", b"")
        if len(inner) == len(left):
            break
        left = inner
    return False
