"""Texts that are not UTF-8 become readable, wherever they stand, and nothing else changes."""

from __future__ import annotations

import pyarrow as pa

from lakelet.inspection.texts import readable

LATIN = "café".encode("latin-1")
SHOWN = "caf�"


def texts(*values: bytes | None) -> pa.Array:
    """A STRING column of any bytes."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_texts_of_columns_structs_lists_and_maps_become_readable() -> None:
    text = texts(LATIN, None, b"ok")
    table = pa.table(
        {
            "text": text,
            "struct": pa.StructArray.from_arrays([text, pa.array([1, 2, 3])], ["a", "b"], mask=pa.array([False, False, True])),
            "list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), text, mask=pa.array([False, True, False])),
            "map": pa.MapArray.from_arrays(pa.array([0, 1, 1, 2], pa.int32()), texts(LATIN, b"k"), texts(b"v", LATIN)),
            "whole": pa.array(["é", None, ""]),
            "number": pa.array([1, 2, None]),
        }
    )
    found = readable(table)
    assert found.schema == table.schema
    assert found.column("whole") is not None
    assert found.to_pydict() == {
        "text": [SHOWN, None, "ok"],
        "struct": [{"a": SHOWN, "b": 1}, {"a": None, "b": 2}, None],
        "list": [[SHOWN, None], None, ["ok"]],
        "map": [[(SHOWN, "v")], [], [("k", SHOWN)]],
        "whole": ["é", None, ""],
        "number": [1, 2, None],
    }


def test_slices_and_chunks_keep_their_rows() -> None:
    table = pa.table({"text": texts(b"a", LATIN, b"b", LATIN)})
    assert readable(table.slice(1, 2)).to_pydict() == {"text": [SHOWN, "b"]}
    assert readable(pa.concat_tables([table, table.slice(2)])).to_pydict() == {"text": ["a", SHOWN, "b", SHOWN, "b", SHOWN]}
