"""Every gold table of the systems of this repository can be brought up to date in part: no update computes it as a whole for its query."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakelet
from lakelet.plan.refreshes import ViewShape
from tests.paths import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {
    "audit": {
        "calls_daily": ["event_date", "event_source", "event_name"],
        "denied_calls": ["event_date", "user_arn", "event_source", "event_name", "error_code"],
        "principals_daily": ["event_date", "user_arn"],
    },
    "factory": {
        "movements": ["factory", "line", "station", "box_id", "direction", "moved_at"],
        "station_visits": ["factory", "line", "box_id", "station"],
        "cycle_times": ["factory", "line", "box_id"],
        "bottlenecks": ["factory", "line", "hour"],
        "throughput": ["factory", "line", "window_start"],
    },
    "starter": {"revenue_by_country": ["day", "country"]},
    "contact-center": {
        "channel_funnel": ["day", "channel"],
        "assistant_deflection": ["day", "channel"],
        "workforce_hourly": ["hour", "channel"],
        "agent_daily": ["day", "agent_id"],
        "team_daily": ["day", "team"],
    },
}
"""By system and view: the columns by which its result is cut."""


def copied(system: str, folder: Path) -> Path:
    """The project of a system in a folder of its own, with the input that it needs to be analysed."""
    if system != "contact-center":
        return Path(shutil.copytree(ROOT / "examples" / system, folder, ignore=shutil.ignore_patterns(".lakelet", "tests")))
    for name in ("pipelines", "expectations", "resources", "databricks.yml", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
    command = [sys.executable, str(ROOT / "examples" / system / "generate.py"), str(folder / "sample"), "--rows", "200", "--seed", "1"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("system", list(KEYS))
def test_every_gold_table_of_a_system_can_be_brought_up_to_date_in_part(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    folder = copied(system, tmp_path / "project")
    monkeypatch.chdir(folder)
    found = {}
    with lakelet.load(folder, storage=tmp_path / "storage", spark=spark).opened() as opened:
        for analyzed in opened.analysis.datasets.values():
            for flow in analyzed.flows:
                if flow.batch.shape is not None:
                    shape, columns = flow.batch.shape, analyzed.schema.names
                    keys = [columns[at] for at in shape.keys] if isinstance(shape, ViewShape) else shape.reason
                    found[analyzed.dataset.name.name] = keys
    assert found == KEYS[system]
