"""Compare the stored tables of the contact center with what a sample expects; exit code 1 and a list where they differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from sampledata import ReadTable, SampleError, check


def stored(schema: str) -> ReadTable:
    """Return a reader of the Delta tables below a path or URI. It raises KeyError for a table that is not there."""

    def read(name: str) -> pa.Table:
        try:
            return DeltaTable(f"{schema}/{name}").to_pyarrow_table()
        except TableNotFoundError:
            raise KeyError(name) from None

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path, metavar="SAMPLE", help="the sample's folder")
    parser.add_argument("--drop", type=int, help="compare with the result after this drop (default: the last)")
    parser.add_argument("--storage", default=".lakelet", help="where Lakelet keeps its tables (default .lakelet)")
    parser.add_argument("--schema", default="main/comms", help="catalog and schema of the tables (default main/comms)")
    given = parser.parse_args()
    try:
        differences = check(given.sample, stored(f"{given.storage}/tables/{given.schema}"), drop=given.drop)
    except SampleError as error:
        sys.exit(str(error))
    if differences:
        print(*differences, sep="\n")
        sys.exit(f"{len({one.table for one in differences})} tables below {given.storage} differ from {given.sample}.")
    print("Every table is as expected.")


if __name__ == "__main__":
    main()
