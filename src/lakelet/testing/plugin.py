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
_GIVEN = pytest.StashKey[set[Path]]()
_BESIDE = pytest.StashKey[bool]()
_UPDATE = "--lakelet-update-snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots."""
    group = parser.getgroup("lakelet")
    group.addoption(_UPDATE, action="store_true", help="Write the snapshots that tests compare tables with, instead of comparing.")


def pytest_configure(config: pytest.Config) -> None:
    """Collect unit tests in YAML beside the code too where `testpaths` would leave them out.

    Not where pytest is given a file that defines pipelines: it stands for the tests beside their code. Nor where `auto_discover`
    of `[tool.sdp-test]` is false.
    """
    from lakelet.testing.yaml_names import is_definition_file, unit_test_files

    config.stash[_GIVEN] = given = {Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args}
    config.stash[_BESIDE] = beside = not any(map(is_definition_file, given)) and _discovered(config.rootpath)
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or hasattr(config, "workerinput") or not beside:
        return
    found = unit_test_files(config.rootpath, config.getini("norecursedirs"))
    config.args += [str(file) for file in found if not any(file.resolve().is_relative_to(one) for one in given)]


def _discovered(root: Path) -> bool:
    """Whether unit tests beside the code are collected without being named: the switch that sdp-test has for it."""
    file = root / "pyproject.toml"
    if not file.is_file() or "auto_discover" not in (text := file.read_text(encoding="utf-8", errors="replace")):
        return True
    from lakelet.config.tool_settings import tomllib

    try:
        return tomllib.loads(text).get("tool", {}).get("sdp-test", {}).get("auto_discover") is not False
    except tomllib.TOMLDecodeError:
        return True


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `*.unit_tests.yml`, `*_pipeline_tests.yml` and given definitions of pipelines, unless the package of that format does."""
    from lakelet.testing.yaml_names import is_definition_file, is_pipeline_test_file, is_unit_test_file

    definition, stash = is_definition_file(file_path), parent.config.stash
    if not (definition or is_unit_test_file(file_path)) or parent.config.pluginmanager.hasplugin(_OTHER_PLUGIN):
        return None
    unnamed = not definition and (is_pipeline_test_file(file_path) or stash[_BESIDE])
    if not unnamed and file_path.resolve() not in stash[_GIVEN]:
        return None
    from lakelet.testing.pytest_items import UnitTestFile

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
    """Make a project for real updates: files and rows arrive, tables and metrics are read, storage is a folder of the test:

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
    from lakelet.testing.row_comparison import Snapshots

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
