"""The pytest plugin: fixtures `spark`, `load_pipeline` and `lakelet`, unit tests in YAML, table differences.

Every pytest run loads this module, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelet.config.update_config import PipelineConfig
    from lakelet.testing.loading import PipelineFunctions
    from lakelet.testing.project import Pairs, Project

__tracebackhide__ = True

_OTHER_PLUGIN = "sdp_test"
_UPDATE = "--lakelet-update-snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots."""
    group = parser.getgroup("lakelet")
    group.addoption(_UPDATE, action="store_true", help="Write the snapshots that tests compare tables with, instead of comparing.")


def pytest_configure(config: pytest.Config) -> None:
    """Collect unit tests in YAML beside the code too where `testpaths` would leave them out."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or hasattr(config, "workerinput"):
        return
    from lakelet.testing.yaml_names import unit_test_files

    given = [Path(config.invocation_params.dir, arg).resolve() for arg in config.args]
    found = unit_test_files(config.rootpath, config.getini("norecursedirs"))
    config.args += [str(file) for file in found if not any(file.resolve().is_relative_to(one) for one in given)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `*.unit_tests.yml` and `*_pipeline_tests.yml`, unless the package whose format they have does."""
    from lakelet.testing.yaml_names import is_unit_test_file

    if not is_unit_test_file(file_path) or parent.config.pluginmanager.hasplugin(_OTHER_PLUGIN):
        return None
    from lakelet.testing.collecting import UnitTestFile

    return UnitTestFile.from_parent(parent, path=file_path)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show how the rows of a table differ from a list of dictionaries, as a table."""
    project = sys.modules.get("lakelet.testing.project")
    if project is None or op != "==" or not isinstance(left, list) or not isinstance(right, list):
        return None
    rows: Any = next((side for side in (left, right) if isinstance(side, project.Rows)), None)
    other = right if rows is left else left
    if rows is None or not all(isinstance(row, Mapping) for row in other):
        return None
    return list(project.explained(rows, other))


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The Spark session of the test run, with Delta, started for small input. A fixture `spark` of the project's own takes its place."""
    from lakelet.testing.sessions import shared_session

    return shared_session()


@pytest.fixture
def load_pipeline(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[..., PipelineFunctions]:
    """Load one pipeline file and give back its functions, to be called on small data frames:

        p = load_pipeline("pipelines/gold/workforce.py", inputs={"message_sent": rows})
        assert_df_equality(p["workforce_hourly"](), expected)

    Nothing is updated or stored. `path` is relative to pytest's root folder; `conf` answers `spark.conf.get`; `inputs` holds the data
    frame behind each dataset name (or folder of files) that the functions read. The session is that of the test's fixture `spark`.
    """
    from lakelet.testing.loading import load_file

    def load(path: str | Path, *, conf: Mapping[str, str] | None = None, inputs: Mapping[str, DataFrame] | None = None) -> Any:
        return load_file(request.config.rootpath / path, spark=spark, conf=conf or {}, inputs=inputs or {})

    return load


@pytest.fixture
def lakelet(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[..., Project]:
    """Make a project for real updates: files and rows arrive, tables and metrics are looked at, storage is a folder of the test:

        p = lakelet("pipelines/silver/orders.py")
        p.arrive("orders/1.json", {"id": 1}, {"id": None})
        p.update()
        assert p.rows("orders") == [{"id": 1}]
        assert p.metrics("orders").dropped_records == 1

    Sources are what `lakelet run` takes, relative to pytest's root folder; none means the project there. `parameters`, `target`,
    `catalog`, `schema`, `maps` and `tables` are those of `lakelet.load`. The pipeline's parameter `landing` is the project's landing
    folder; `landing="/Volumes/main/raw"` makes a path of the code mean it instead.
    """
    from lakelet.config.update_config import load_config
    from lakelet.testing.project import Project
    from lakelet.testing.snapshots import Snapshots

    made = 0

    def make(
        *sources: str | Path,
        parameters: Mapping[str, str] | None = None,
        target: str | None = None,
        catalog: str | None = None,
        schema: str | None = None,
        maps: Mapping[str, str] | None = None,
        tables: Mapping[str, str] | None = None,
        landing: str | None = None,
    ) -> Project:
        nonlocal made
        made += 1
        folder = tmp_path / f"lakelet-{made}"

        def configure(more_maps: Pairs, more_tables: Pairs) -> PipelineConfig:
            return load_config(
                [str(request.config.rootpath / source) for source in sources],
                target=target,
                params={**({} if landing else {"landing": str(folder / "landing")}), **(parameters or {})},
                storage=str(folder / "storage"),
                catalog=catalog,
                schema=schema,
                maps=(*(maps or {}).items(), *more_maps),
                tables=(*(tables or {}).items(), *more_tables),
                cwd=request.config.rootpath,
                environ={key: value for key, value in os.environ.items() if not key.startswith("LAKELET_")},
            )

        file = request.path
        snapshots = Snapshots(file.parent / "snapshots" / file.stem, request.node.name, request.config.getoption(_UPDATE))
        return Project(folder, configure, spark, landing=landing, snapshots=snapshots)

    return make
