"""text and binaryFile, on the readers themselves (FF-27, FF-28); numbered cases carry their ids."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from format_folder import Folder, picked
from pyspark.sql import types as t

from lakelet.autoloader.source_spec import BAD_BYTES, NONE
from lakelet.base.errors import LakeletError


def test_I17_lines_whole_files_and_bytes(tmp_path: Path) -> None:
    text = Folder(tmp_path, "text").put("a.txt", "l1\nl2\n")
    assert text.types() == {"value": "string"}
    assert picked(text.rows(), "value") == ["l1", "l2"]
    assert picked(text.rows({"wholeText": "true"}), "value") == ["l1\nl2\n"]
    binary = Folder(tmp_path, "binaryFile")
    assert binary.types() == {"path": "string", "modificationTime": "timestamp", "length": "bigint", "content": "binary"}
    (row,) = binary.rows()
    assert (row["length"], row["content"]) == (6, b"l1\nl2\n")
    assert row["path"] == f"file:{tmp_path}/a.txt"


def test_E08_columns_of_binaryFile_never_change(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "binaryFile").put("a.bin", b"\x00")
    with pytest.raises(LakeletError) as failure:
        folder.open({"cloudFiles.schemaEvolutionMode": "addNewColumns"})
    assert failure.value.code == "CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE"
    for options in ({}, {"cloudFiles.schemaEvolutionMode": "none"}):
        assert folder.open(options).reader_spec().mode == NONE
        assert picked(folder.rows(options), "content") == [b"\x00"]


def test_FF28_a_file_without_bytes_is_a_row(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "binaryFile").put("a.bin", b"").put("b.bin", b"\x00")
    assert picked(folder.rows(), "length") == [0, 1]


def test_a_declared_schema_of_binaryFile_must_be_its_own(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "binaryFile").put("d=1/sp ace.bin", b"")
    right = [("path", t.StringType()), ("modificationTime", t.TimestampType()), ("length", t.LongType()), ("content", t.BinaryType())]
    schema = t.StructType([t.StructField(name, kind) for name, kind in [*right, ("d", t.IntegerType())]])
    (row,) = folder.rows(schema=schema)
    assert (row["length"], row["content"], row["d"]) == (0, b"", 1)
    assert row["path"].endswith("/d=1/sp ace.bin")
    for wrong in (right[:2], [("path", t.BinaryType()), *right[1:]]):
        with pytest.raises(LakeletError, match="modificationTime TIMESTAMP") as failure:
            folder.open(schema=t.StructType([t.StructField(name, kind) for name, kind in wrong]))
        assert failure.value.code == "BINARY_FILE_DATA_SOURCE_SCHEMA_MISMATCH"


def test_blank_lines_are_rows_and_empty_files_are_none(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "text").put("a.txt", "x\n\n y \r\nz").put("empty.txt", "")
    assert picked(folder.rows(), "value") == [" y ", "", "x", "z"]
    assert picked(folder.rows({"wholeText": "true"}), "value") == ["x\n\n y \r\nz"]


def test_line_separators_encodings_and_compression(tmp_path: Path) -> None:
    assert picked(Folder(tmp_path / "1", "text").put("a.txt", "a|b\n|c").rows({"lineSep": "|"}), "value") == ["a", "b\n", "c"]
    assert picked(Folder(tmp_path / "2", "text").put("a.txt", "a\r\nb").rows({"lineSep": "\n"}), "value") == ["a\r", "b"]
    assert picked(Folder(tmp_path / "2b", "text").put("a.txt", "a<r>b<\n<r>c").rows({"lineSep": "<r>"}), "value") == ["a", "b<\n", "c"]
    assert picked(Folder(tmp_path / "3", "text").put("a.txt", "ä\nö".encode("utf-16")).rows({"encoding": "UTF-16"}), "value") == ["ä", "ö"]
    assert picked(Folder(tmp_path / "4", "text").put("a.txt.gz", gzip.compress(b"a\rb\n")).rows(), "value") == ["a", "b"]
    (row,) = Folder(tmp_path / "5", "text").put("a.txt", b"\0a\xd8").rows({"encoding": "UTF-16BE"})
    assert (row["value"], row["line"] & BAD_BYTES != 0) == ("a\ufffd", True)


def test_bytes_that_are_not_utf8_pass_through(tmp_path: Path) -> None:
    from lakelet.autoloader.discovery.files import files_for
    from lakelet.autoloader.formats.text_and_binary import TextReader
    from lakelet.autoloader.source_spec import FilePart

    source = Folder(tmp_path, "text").put("a.txt", b"\xff\xfe\n").open()
    import pyarrow as pa

    reader = TextReader(source.reader_spec(), [("value", t.StringType(), pa.string())], files_for(str(tmp_path))[0], frozenset())
    (chunk,) = reader.chunks(FilePart(str(tmp_path / "a.txt"), 3, 0))
    assert chunk.columns[0].view(pa.binary()).to_pylist() == [b"\xff\xfe"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"lineSep": "|"}, b"a\xe9\xff"),
        ({"encoding": "UTF-8", "lineSep": "|"}, b"a\xe9\xff"),
        ({"encoding": "US-ASCII"}, "a\ufffd\ufffd".encode()),
    ],
)
def test_FF33_a_byte_that_is_no_character_is_kept_in_utf8_and_replaced_elsewhere(
    tmp_path: Path, options: dict[str, str], wanted: bytes
) -> None:
    import pyarrow as pa

    from lakelet.autoloader.discovery.files import files_for
    from lakelet.autoloader.formats.text_and_binary import TextReader
    from lakelet.autoloader.source_spec import FilePart

    source = Folder(tmp_path, "text").put("a.txt", b"a\xe9\xff").open(options)
    reader = TextReader(source.reader_spec(), [("value", t.StringType(), pa.string())], files_for(str(tmp_path))[0], frozenset())
    (chunk,) = reader.chunks(FilePart(str(tmp_path / "a.txt"), 3, 0))
    assert chunk.columns[0].view(pa.binary()).to_pylist() == [wanted]


@pytest.mark.parametrize("parts", [2, 5, 30])
def test_byte_ranges_together_are_the_file(tmp_path: Path, parts: int) -> None:
    folder = Folder(tmp_path, "text").put("a.txt", "".join(f"line {n}\n" for n in range(20)))
    assert picked(folder.rows(parts=parts), "value") == picked(folder.rows(), "value")


def test_a_declared_column_of_another_name_takes_the_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "text").put("k=1/a.txt", "x\n")
    schema = t.StructType([t.StructField("line_text", t.StringType()), t.StructField("k", t.StringType())])
    assert folder.rows(schema=schema) == [{"line_text": "x", "k": "1", "line": None}]
    with pytest.raises(LakeletError, match="n: int"):
        folder.open(schema=t.StructType([t.StructField("n", t.IntegerType())]))
