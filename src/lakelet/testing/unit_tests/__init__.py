"""Unit tests of datasets as YAML beside the code: given rows, expected rows; the format of the package sdp-test, and what it lacks."""

from lakelet.testing.unit_tests.cases import UnitTest
from lakelet.testing.unit_tests.files import read_tests
from lakelet.testing.unit_tests.running import Failed, run_test

__all__ = ["Failed", "UnitTest", "read_tests", "run_test"]
