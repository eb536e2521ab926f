"""A pipeline of two tables and several views in SQL, changed between updates, and compared with its queries on the stored tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lakelet.files.delta_log import TableLog
from tests.spark.conftest import Project

TABLES = """
import dlt

@dlt.table(table_properties={"delta.enableDeletionVectors": "%s"})
def sales():
    rows = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    columns = "id INT, shop INT, kind STRING, at TIMESTAMP, price DECIMAL(10,2), x DOUBLE"
    return rows.schema(columns).load(spark.conf.get("landing") + "/sales")

@dlt.table
def shops():
    rows = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return rows.schema("shop INT, region STRING").load(spark.conf.get("landing") + "/shops")
"""
VIEW = """
@dp.materialized_view(refresh_policy="{policy}"{more})
{rules}def {name}():
    return spark.sql({text!r})
"""


class Views:
    """Views of a project by name, each with the text of its query, and what its last update did with each."""

    def __init__(
        self, project: Project, views: Mapping[str, str], *, marks: bool = False, policy: str = "incremental", **given: str
    ) -> None:
        self.project, self.views, self.spark = project, views, project.spark
        self.policy, self.marks, self.given, self.batches = policy, marks, given, 0
        self.write(views)

    def write(self, views: Mapping[str, str], tables: str = TABLES) -> None:
        self.views = views
        source = tables % str(self.marks).lower() + "\nfrom pyspark import pipelines as dp\n"
        for name, text in views.items():
            rules, more = self.given.get(f"{name}_rules", ""), self.given.get(f"{name}_more", "")
            query = text.format(**{one: one for one in self._names})
            source += VIEW.format(name=name, text=query, policy=self.given.get(f"{name}_policy", self.policy), rules=rules, more=more)
        self.project.write(source)

    def arrive(self, table: str, *rows: Mapping[str, Any]) -> Views:
        self.batches += 1
        self.project.arrive(f"{self.batches}.json", *rows, folder=table)
        return self

    def sql(self, text: str) -> Views:
        """Run a statement of somebody else; `{name}` is the stored table of that name."""
        self.spark.sql(self._on_storage(text))
        return self

    def run(self, **request: Any) -> dict[str, str]:
        """Run an update; each view is then what its query gives. How each was brought there: nothing for one without a commit."""
        before = {name: self.version(name) for name in self.views}
        self.project.run(**request)
        for name in self.views:
            self.check(name)
        return {name: self.technique(name) for name in self.views if self.version(name) != before[name]}

    def check(self, name: str) -> None:
        """The stored rows are those of the query, and each as often."""
        wanted = self.spark.sql(self._on_storage(self.views[name]))
        stored = self.spark.read.format("delta").load(str(self.project.path(name))).select(*wanted.columns)
        assert bag(stored) == bag(wanted), name

    def version(self, name: str) -> int:
        return TableLog(self.project.path(name)).version()

    def technique(self, name: str) -> str:
        """How the newest commit of Lakelet came to be."""
        log = TableLog(self.project.path(name))
        for version in range(log.version(), -1, -1):
            commit = log.commit(version)
            assert commit is not None
            if commit.user_metadata and "view" in commit.user_metadata.get("lakelet", {}):
                return str(commit.user_metadata["lakelet"]["view"]["technique"])
        raise AssertionError(f"{name} was never computed")

    def _on_storage(self, text: str) -> str:
        return text.format(**{name: f"delta.`{self.project.path(name)}`" for name in self._names})

    @property
    def _names(self) -> set[str]:
        return {"sales", "shops", *self.views}


def bag(frame: Any) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in frame.collect())


def sale(id: int, shop: int | None, kind: str | None, at: str | None, price: float | None, x: Any = 1.0) -> dict[str, Any]:
    return {"id": id, "shop": shop, "kind": kind, "at": at, "price": price, "x": x}
