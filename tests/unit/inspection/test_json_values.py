"""Arrow values as JSON values."""

from __future__ import annotations

import math
import struct

import pyarrow as pa

from lakelet.inspection.json_values import json_rows


def test_a_float_has_the_digits_that_tell_it_from_others():
    written = [23.4, 0.1, 1e-7, 16777217.0, 3.4028235e38, -1.5, 0.0, math.nan, math.inf, None]
    table = pa.table({"f": pa.array(written, pa.float32()), "s": [{"x": None}] * len(written)})

    shown = [row["f"] for row in json_rows(table)]

    assert shown == [23.4, 0.1, 1e-07, 16777216.0, 3.4028235e38, -1.5, 0.0, "NaN", "Infinity", None]


def test_every_float_can_be_read_back():
    values = [struct.unpack("f", struct.pack("I", bits))[0] for bits in range(1, 0x7F800000, 9_999_991)]
    table = pa.table({"f": pa.array(values, pa.float32())})
    assert pa.array([row["f"] for row in json_rows(table)], pa.float32()).to_pylist() == values
