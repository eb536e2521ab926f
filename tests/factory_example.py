"""A copy of examples/factory, and the comparison of its tables with what the files that landed say."""

from __future__ import annotations

import runpy
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lakelet.base.names import TableName
from lakelet.storage.root import Storage
from tests.oracles.factory import expected
from tests.paths import ROOT

TABLES = ("movements", "station_visits", "cycle_times", "throughput", "bottlenecks")


class FactoryExample:
    """The example in a folder of its own. `others`: factories that a test adds; the oracle does not know them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.landing = folder, folder / "landing"
        self.others: tuple[str, ...] = ()
        shutil.copytree(ROOT / "examples" / "factory", folder, ignore=shutil.ignore_patterns("__pycache__", "landing", ".lakelet"))

    def drop(self, start: int, count: int = 1) -> None:
        """Files of some drops more land."""
        made = runpy.run_path(str(self.folder / "generate.py"))
        for number in range(start, start + count):
            for path, text in made["files_of_drop"](1, 12, number):
                made["write"](self.landing / path, text)

    def place(self, name: str) -> Path:
        """Folder of a table."""
        return self.folder / Storage(self.folder / ".lakelet").table_path(TableName("main", "factory", name))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Rows of a table, times in UTC."""
        rows = DeltaTable(str(self.place(name))).to_pyarrow_table().to_pylist()
        return [{column: in_utc(value) for column, value in row.items()} for row in rows]

    def expected(self) -> Mapping[str, Any]:
        """What the oracle makes of the files of the factories that it knows."""
        known = self.folder / "known"
        shutil.rmtree(known, ignore_errors=True)
        shutil.copytree(self.landing, known, ignore=shutil.ignore_patterns(*self.others))
        return expected(known)

    def check(self) -> None:
        """Every table equals what the files that have arrived say."""
        wanted = self.expected()
        self.check_tables(wanted)
        broken = [row["is_quarantined"] for row in self.rows("movements_raw") if row["factory"] not in self.others]
        assert sum(broken) == wanted["broken_lines"] > 0
        assert len(broken) - sum(broken) > len(wanted["movements"]) > 0, "no movement came twice"

    def check_tables(self, wanted: Mapping[str, Any]) -> None:
        """Every table after bronze equals what the oracle says."""
        for table in TABLES:
            found = [tuple(row.values()) for row in self.rows(table) if row["factory"] not in self.others]
            too_many, missing = differences(found, wanted[table])
            assert not too_many and not missing, f"{table} has {too_many} and lacks {missing}"  # noqa: PT018 - told together

    def has_caught_up(self, wanted: Mapping[str, Any]) -> bool:
        """Whether every table after bronze is there and equals what the oracle says."""
        try:
            self.check_tables(wanted)
        except (AssertionError, TableNotFoundError):
            return False
        return True


def in_utc(value: Any) -> Any:
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


def differences(found: Sequence[tuple[Any, ...]], wanted: Sequence[tuple[Any, ...]]) -> tuple[list[Any], list[Any]]:
    """The first rows that are too many, and that are missing. Means are equal to nine digits."""
    ours, theirs = Counter(map(comparable, found)), Counter(map(comparable, wanted))
    return [*(ours - theirs).elements()][:5], [*(theirs - ours).elements()][:5]


def comparable(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row)
