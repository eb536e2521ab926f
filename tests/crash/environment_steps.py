"""What an environment goes through in the tests of this folder: runs, another run after a change, promotion, removal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.environments import (
    begin_environment,
    drop_environment,
    environment_config,
    environment_names,
    environment_root,
    find_environment,
)
from tests.spark.conftest import Project

NAME = "tried"
PIPELINE = """
import dlt
from pyspark.sql import functions as F

@dlt.table
def bronze():
    files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, amount INT")
    return files.load(spark.conf.get("landing"))

dlt.create_streaming_table("latest")
dlt.apply_changes(target="latest", source="bronze", keys=["id"], sequence_by="amount")

@dlt.table
def silver():
    return dlt.read_stream("bronze").select("id", (F.col("amount") * 1).alias("amount"))

@dlt.table
def gold():
    return spark.read.table("silver").groupBy("id").agg(F.sum("amount").alias("total"))
"""
CHANGED = PIPELINE.replace("* 1)", "* 10)")
TABLES = ("bronze", "latest", "silver", "gold")


def run_environment(project: Project, root: Path, *select: str) -> None:
    """One update of the environment in a folder, which begins if there is none."""
    begin_environment(project.storage.root, root)
    config = environment_config(project.pipeline.config, root)
    result = Pipeline(config, spark=project.spark).run(Request(select=select or ("state:modified+",)))
    assert result.state == "COMPLETED", list(map(str, result.errors))


def promote(project: Project, root: Path) -> list[Any]:
    """Promote the environment in a folder; what was done with each dataset."""
    result, found = project.pipeline.promote(find_environment(root.parent.parent, root.name))
    assert result is None or result.state == "COMPLETED", list(map(str, result.errors))
    return list(found)


def every_step(project: Project, select: Sequence[str]) -> None:
    """Run the environment with one definition, then with another, promote it and drop it."""
    root = environment_root(project.storage.root, NAME)
    project.write(CHANGED.replace("* 10)", "* 100)"))
    run_environment(project, root, *select)
    project.write(CHANGED)
    if environment_names(project.storage.root):
        run_environment(project, root, *select)
    promote(project, root)
    drop_environment(find_environment(project.storage.root, NAME))
