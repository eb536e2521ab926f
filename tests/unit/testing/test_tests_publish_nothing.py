"""A project of tests has the settings of the pipeline, but for those that others would see (PB-8)."""

from __future__ import annotations

from pathlib import Path

from lakelet.config.update_config import load_config
from lakelet.testing.project import Project
from lakelet.testing.row_comparison import Snapshots


def test_tests_of_a_project_that_publishes_publish_nothing_and_ask_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.lakelet]\nschema = "shop"\npublish = { hive = "thrift://localhost:9083" }\n')
    (tmp_path / "pipeline.py").write_text("import dlt\n")
    own = load_config([str(tmp_path / "pipeline.py")])
    tested = Project(tmp_path / "test", lambda *_: own, None, landing=None, snapshots=Snapshots(tmp_path, "test", False))  # type: ignore[arg-type]
    address = {"hive": "thrift://localhost:9083"}
    assert (own.publish, own.catalogs, own.namespace.schema) == (address, address, "shop")
    assert (tested.config.publish, tested.config.catalogs, tested.config.namespace.schema) == ({}, {}, "shop")
