"""Sample data for system A (docs/system-a.md): a generator of input, and an oracle that knows every table's right content.

`generate` writes or continues the landed files, `write_expected` computes the right answer after each drop from those files,
`check` and `check_expectations` compare what a pipeline made of them with that answer.
"""

from lakelet.samples.check import ExpectedCounts, ReadTable, check, check_expectations, expected_counts
from lakelet.samples.compare import Difference
from lakelet.samples.generate import DropReport, SampleReport, generate
from lakelet.samples.oracle import write_expected

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
