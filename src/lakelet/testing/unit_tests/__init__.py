"""Unit tests of datasets as YAML beside the code: given rows, expected rows; the format of the package sdp-test, and what it lacks.

Importing this package imports nothing heavy, so that tests are collected quickly. `running` imports what runs them.
"""

from lakelet.testing.unit_tests.cases import FailedUnitTest, UnitTest, UnreadableTest
from lakelet.testing.unit_tests.files import all_tests, read_tests

__all__ = ["FailedUnitTest", "UnitTest", "UnreadableTest", "all_tests", "read_tests"]
