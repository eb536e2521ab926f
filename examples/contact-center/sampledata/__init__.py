"""Sample data of the contact center (docs/system-a.md): a generator of input, and an oracle that knows every table's right content.

`generate` writes or continues the landed files, `write_expected` computes the right answer after each drop from those files,
`check` and `check_expectations` compare what a pipeline made of them with that answer.
"""

from sampledata.check import ExpectedCounts, ReadTable, check, check_expectations, expected_counts
from sampledata.compare import Difference
from sampledata.generate import DropReport, SampleReport, generate
from sampledata.layout import SampleError
from sampledata.oracle import write_expected

__all__ = [
    "Difference",
    "DropReport",
    "ExpectedCounts",
    "ReadTable",
    "SampleError",
    "SampleReport",
    "check",
    "check_expectations",
    "expected_counts",
    "generate",
    "write_expected",
]
