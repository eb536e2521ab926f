"""The one Spark session of the test run, and the marker of the tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session that all tests share, started as Lakelet starts it. Tests use their own `tmp_path` and clean up their views."""
    from lakelet.session import start_session

    warehouse = tmp_path_factory.mktemp("warehouse").as_uri()
    session = start_session(app_name="tests", input_bytes=0, conf={"spark.sql.warehouse.dir": warehouse})
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the session, through whichever fixture, is a Spark test: `-m "not spark"` leaves them out."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
