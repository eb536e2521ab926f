"""Pictures of a terminal for the pages, drawn from what a command wrote to one."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import unescape

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme

COLUMNS = 80
_THEME = TerminalTheme(
    (22, 27, 34),
    (214, 220, 228),
    [(22, 27, 34), (240, 113, 120), (126, 198, 153), (229, 192, 123), (97, 175, 239), (198, 120, 221), (86, 182, 194), (214, 220, 228)],
)
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_FRAME = (
    """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<style>text{{font:20px """
    + _FONT
    + """;white-space:pre}}
{styles}</style>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
{matrix}
</g>
</svg>
"""
)
_SUPERFLUOUS = re.compile(r' clip-path="[^"]*"|<text [^>]*>\n</text>')
_TEXT = re.compile(r'<text [^>]*?\by="([\d.]+)"[^>]*>([^<]*)</text>')


def drawn(command: str, lines: Sequence[str]) -> str:
    """The picture, as SVG, of a terminal on which the command was typed; `lines`: what it showed, colours as control sequences."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(f"$ {command}", style="bold", highlight=False, markup=False)
    decoder = AnsiDecoder()
    for line in lines:
        text = decoder.decode_line(line)
        for row in text.divide(range(COLUMNS, len(text), COLUMNS)):
            console.print(row, highlight=False)
    svg = console.export_svg(title="", theme=_THEME, code_format=_FRAME, unique_id="t", font_aspect_ratio=0.6)
    return "\n".join(filter(None, map(str.strip, _SUPERFLUOUS.sub("\n", svg).replace("&#160;", "\xa0").splitlines()))) + "\n"


def words(svg: str) -> list[str]:
    """The lines of text in a picture, the typed command first, without the places of the words."""
    rows: dict[float, list[str]] = {}
    for top, text in _TEXT.findall(svg):
        rows.setdefault(float(top), []).append(unescape(text).replace("\xa0", " "))
    found = ["".join(parts).strip() for _, parts in sorted(rows.items())]
    return [line for line in found if line]
