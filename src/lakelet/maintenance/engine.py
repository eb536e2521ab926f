"""The part of maintenance that Spark does: it rewrites files, and lists those no version needs (docs/decisions/0038-maintenance.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from lakelet.base.names import quoted
from lakelet.files.paths import AnyPath
from lakelet.jvm.delta import log_of, newest
from lakelet.jvm.sessions import cloned, java_session, session_on
from lakelet.maintenance.layout import DataFile, OptimizeJob, OptimizeKind, small

_SETTINGS = {
    "spark.databricks.delta.vacuum.logging.enabled": "false",
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
}


class Engine:
    """One Spark session, started when it is needed. `start` gives it."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        """A session of its own on the one that `start` gives, so that settings stay in it."""
        if self._session is None:
            base = self._start()
            self._session = session_on(base, cloned(java_session(base)))
            for key, value in _SETTINGS.items():
                self._session.conf.set(key, value)
        return self._session

    def files(self, table: AnyPath) -> tuple[list[DataFile], dict[str, str], str]:
        """The files of the newest version, the table's properties, and Delta's id of it."""
        log = self._log(table)
        found = []
        for text in log.allFiles().toJSON().collectAsList():
            body = json.loads(text)
            found.append(DataFile(unquote(body["path"]), int(body["size"]), json.dumps(body.get("partitionValues") or {})))
        described = json.loads(log.metadata().json())["metaData"]
        return found, described.get("configuration") or {}, str(described["id"])

    def _log(self, table: AnyPath) -> Any:
        return newest(self.session, log_of(self.session, str(table)))

    def optimize(self, table: AnyPath, job: OptimizeJob, target: int) -> None:
        """Rewrite files of a table, in commits that change no rows."""
        self.session.conf.set("spark.databricks.delta.optimize.minFileSize", str(small(target)))
        self.session.conf.set("spark.databricks.delta.optimize.maxFileSize", str(target))
        columns = f" ZORDER BY ({', '.join(map(quoted, job.columns))})" if job.how is OptimizeKind.ZORDER else ""
        self.session.sql(f"OPTIMIZE delta.{quoted(str(table))}{columns}").collect()

    def removable(self, table: AnyPath, retention: float) -> list[str]:
        """Locations of files that no version of the last `retention` seconds has, and of empty folders.

        Delta takes the duration that the table declares instead, unless `retention` is 0: the caller keeps what is younger.
        """
        hours = math.ceil(retention / 3600 * 10_000) / 10_000
        found = self.session.sql(f"VACUUM delta.{quoted(str(table))} RETAIN {hours:.4f} HOURS DRY RUN").collect()
        return [str(row[0]) for row in found]
