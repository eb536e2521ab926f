"""The Spark session that all tests share."""

import pytest
from lakelet.spark.launch.session import start_session


@pytest.fixture(scope="session")
def spark():
    session = start_session(app_name="tests", input_bytes=0)
    yield session
    session.stop()
