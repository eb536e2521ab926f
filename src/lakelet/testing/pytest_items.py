"""Collects YAML unit tests for pytest, one item each; a failing one shows the difference and no frames of Lakelet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import is_library
from lakelet.testing.unit_tests import FailedUnitTest, UnitTest, UnreadableTest, all_tests

__tracebackhide__ = True


class UnitTestFile(pytest.File):
    """A file of unit tests."""

    def collect(self) -> Iterator[UnitTestItem]:
        """Give an item for each test; one that fails for each test, and for the file, that cannot be read: all others run."""
        try:
            for name, test in all_tests(self.path, self.config.rootpath):
                yield UnitTestItem.from_parent(self, name=name, test=test)
        except LakeletError as error:
            unreadable = UnreadableTest(self.path.name, error.where or Location(self.path.name, 1), error)
            yield UnitTestItem.from_parent(self, name=unreadable.name, test=unreadable)


class UnitTestItem(pytest.Item):
    """One unit test; runs on the session of the process, in a folder of its own."""

    def __init__(self, *, test: UnitTest | UnreadableTest, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.test = test

    def runtest(self) -> None:
        if isinstance(self.test, UnreadableTest):
            raise self.test.error
        from lakelet.testing.sessions import shared_session

        spark = shared_session()
        from lakelet.testing.unit_tests.running import run_test  # imported by now, while Java started

        with tempfile.TemporaryDirectory(prefix="lakelet-test-") as folder:
            run_test(self.test, spark, Path(folder))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Say how the result differs, or what the tested code raised and where in it."""
        if isinstance(excinfo.value, FailedUnitTest | LakeletError):
            return str(excinfo.value)
        own = excinfo.traceback.filter(lambda frame: not is_library(str(frame.path)))
        if not len(own):
            from lakelet.spark.errors.diagnosis import first_line

            return f"{type(excinfo.value).__name__}: {first_line(excinfo.value)}"
        excinfo.traceback = own
        return excinfo.getrepr(style="short")

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the test."""
        return self.path, self.test.where.line - 1, self.name
