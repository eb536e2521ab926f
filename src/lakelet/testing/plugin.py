"""The pytest plugin: fixture `load_pipeline`. Every pytest run loads this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelet.testing.loading import PipelineFunctions


@pytest.fixture
def load_pipeline(request: pytest.FixtureRequest) -> Callable[..., PipelineFunctions]:
    """Load one pipeline file and give back its functions, to be called on small data frames:

        p = load_pipeline("pipelines/gold/workforce.py", inputs={"message_sent": rows})
        assert_df_equality(p["workforce_hourly"](), expected)

    Nothing is updated or stored. `path` is relative to pytest's root folder; `conf` answers `spark.conf.get`; `inputs` holds the data
    frame behind each dataset name (or folder of files) that the functions read. The session is that of the test's fixture `spark`.
    """
    from lakelet.testing.loading import load_file

    def load(path: str | Path, *, conf: Mapping[str, str] | None = None, inputs: Mapping[str, DataFrame] | None = None) -> Any:
        file = request.config.rootpath / path
        return load_file(file, spark=_session(request), conf=conf or {}, inputs=inputs or {})

    return load


def _session(request: pytest.FixtureRequest) -> SparkSession:
    """The test's own session if it has a fixture `spark`, else the active one, else a new one with Delta."""
    try:
        session: SparkSession = request.getfixturevalue("spark")
    except pytest.FixtureLookupError as missing:
        if missing.argname != "spark":
            raise
        from lakelet.spark.launch.session import start_session

        session = start_session(app_name="pytest")
    return session
