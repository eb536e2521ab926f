"""Compressed files (AL-20)."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.autoloader.discovery.files import LocalFiles
from lakelet.autoloader.formats.text_blocks import open_stream, read_blocks, splittable
from lakelet.base.errors import LakeletError

CONTENT = b"".join(b'{"id":%d,"text":"%s"}\n' % (n, b"ab" * (n % 50)) for n in range(20_000))


def arrow(codec: str) -> Callable[[bytes], bytes]:
    return lambda content: pa.Codec(codec).compress(content, asbytes=True)


def hadoop(codec: str, *, block: int = 70_000, chunk: int = 30_000) -> Callable[[bytes], bytes]:
    def compress(content: bytes) -> bytes:
        found = b""
        for at in range(0, len(content), block):
            plain = content[at : at + block]
            found += struct.pack(">I", len(plain))
            for start in range(0, len(plain), chunk):
                packed = pa.Codec(codec).compress(plain[start : start + chunk], asbytes=True)
                found += struct.pack(">I", len(packed)) + packed
        return found

    return compress


WRITERS = {
    "a.json.gz": gzip.compress,
    "a.bz2": bz2.compress,
    "a.DEFLATE": zlib.compress,
    "a.zst": arrow("zstd"),
    "two.gz": lambda content: gzip.compress(content[:1000]) + gzip.compress(content[1000:]),
    "two.zst": lambda content: arrow("zstd")(content[:1000]) + arrow("zstd")(content[1000:]),
    "program.lz4": arrow("lz4"),
    "hadoop.lz4": hadoop("lz4_raw"),
    "a.snappy": hadoop("snappy"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_compressed_file_reads_like_the_plain_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(WRITERS[name](CONTENT))
    assert not splittable(str(path))
    assert b"".join(read_blocks(LocalFiles(), str(path))) == CONTENT
    with open_stream(LocalFiles(), str(path)) as stream:
        assert stream.readline() == CONTENT.split(b"\n")[0] + b"\n"
        assert stream.read(10) == CONTENT.split(b"\n")[1][:10]


@pytest.mark.parametrize("name", WRITERS)
def test_d10_broken_and_truncated_files_are_named(tmp_path: Path, name: str) -> None:
    for kind, content in {"junk": b"no such format at all", "cut": WRITERS[name](CONTENT)[:-9]}.items():
        path = tmp_path / f"{kind}-{name}"
        path.write_bytes(content)
        with pytest.raises(LakeletError, match="FAILED_READ_FILE") as caught:
            list(read_blocks(LocalFiles(), str(path)))
        assert path.name in str(caught.value)


@pytest.mark.parametrize("name", ["a.gz", "a.bz2", "a.zst", "a.snappy", "a.lz4"])
def test_an_empty_file_has_no_records_whatever_its_extension(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert list(read_blocks(LocalFiles(), str(tmp_path / name))) == []


def test_zip_archives_are_refused_and_missing_files_named(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(LakeletError, match=r"CF_SOURCE_UNSUPPORTED.*zip"):
        open_stream(LocalFiles(), str(tmp_path / "a.zip"))
    with pytest.raises(LakeletError, match="FAILED_READ_FILE") as caught:
        open_stream(LocalFiles(), str(tmp_path / "absent.gz"))
    assert getattr(caught.value, "missing", False)
