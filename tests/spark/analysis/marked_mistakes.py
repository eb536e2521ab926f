"""Pipelines with mistakes that are marked in their text (#! CODE), and the check that exactly these are reported."""

from __future__ import annotations

import re
from pathlib import Path

from lakelet.base.errors import CODES, ExitCode

HEAD = """
    import dlt
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F
"""


NUMBERS = (
    HEAD
    + """
    @dlt.table
    def numbers():
        return spark.range(3)
"""
)


def marks(p):
    """(file, line, code) of every mark in the project's files."""
    found = []
    for file in sorted(p.folder.rglob("*.py")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found += [(file.name, number, code) for code in re.findall(r"#! (\w+)", line)]
    return sorted(found)


def check(p, errors=None):
    """Refuse the project's update; its errors, or those that are given, are exactly the marks. Returns them by line."""
    errors = p.refused() if errors is None else errors
    assert sorted((Path(e.where.file).name, e.where.line, e.code) for e in errors) == marks(p), "\n".join(map(str, errors))
    assert {CODES[e.code].exit_code for e in errors} == {ExitCode.INVALID}
    assert [str(e) for e in errors if not (e.todo or e.nearest)] == []
    return {(Path(e.where.file).name, e.where.line): e for e in errors}


def at(errors, p, mark, file="pipeline.py"):
    """The error at the line that holds the text `mark`."""
    lines = (p.folder / file).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if mark in line]
    return errors[file, number]
