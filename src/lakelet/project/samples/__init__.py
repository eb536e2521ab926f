"""Sample data for system A (docs/system-a.md): a generator of input, and an oracle that knows every table's right content.

`generate` writes or continues the landed files, `write_expected` computes the right answer after each drop from those files,
`check` and `check_expectations` compare what a pipeline made of them with that answer.
"""

from lakelet.project.samples.check import ExpectedCounts, ReadTable, check, check_expectations, expected_counts
from lakelet.project.samples.compare import Difference
from lakelet.project.samples.generate import DropReport, SampleReport, generate
from lakelet.project.samples.oracle import write_expected

__all__ = [
    "Difference",
    "DropReport",
    "ExpectedCounts",
    "ReadTable",
    "SampleReport",
    "check",
    "check_expectations",
    "expected_counts",
    "generate",
    "write_expected",
]
