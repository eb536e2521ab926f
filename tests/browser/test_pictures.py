"""The picture of the page in README.md shows the page as it is. With LAKELET_UPDATE_GOLDEN=1 (`make pictures`) it is taken again."""

from __future__ import annotations

import os
import re
import struct
import zlib
from datetime import timedelta
from pathlib import Path

from tests.event_logs import BEGAN, shop, shop_tables, site

WORDS = b"Description\0\0\0\0\0"
"""Begins the chunk of a PNG that holds the words in the picture: uncompressed text, no language."""


def words(page) -> str:
    """The words of the page, without the time that has passed since its updates."""
    text = re.sub(r"\d+ (s|min|h|d) ago|just now", "AGO", page.inner_text("body"))
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def with_words(png: bytes, text: str) -> bytes:
    chunk = b"iTXt" + WORDS + text.encode()
    end = png.rindex(b"IEND") - 4
    return png[:end] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[end:]


def words_of(png: bytes) -> str:
    start = png.find(b"iTXt" + WORDS)
    if start < 0:
        return ""
    (length,) = struct.unpack(">I", png[start - 4 : start])
    return png[start + 4 + len(WORDS) : start + 4 + length].decode()


def test_the_picture_of_the_page_shows_what_the_page_shows(opened, written, pytestconfig) -> None:
    picture: Path = pytestconfig.rootpath / "docs" / "images" / "page.png"
    page = opened(written(site(shop(), tables=shop_tables())), width=1290, height=936)
    page.clock.set_fixed_time(BEGAN + timedelta(hours=84, minutes=1))
    page.reload()
    page.wait_for_selector(".node")
    found = words(page)
    if os.environ.get("LAKELET_UPDATE_GOLDEN") and found != (words_of(picture.read_bytes()) if picture.exists() else ""):
        picture.write_bytes(with_words(page.screenshot(), found))
    assert words_of(picture.read_bytes()) == found
