"""A copy of examples/web, and the comparison of its tables with what the files that landed say.

The oracle knows neither tokens nor keys. A token must stand for one value and a value have one token; a nested row is named by its event
and its positions, found along `_parent_key`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.oracles.web import expected
from tests.paths import ROOT

KEY = "only for the example: 32 bytes"
TOKENS = ("user", "ip")
Row = Mapping[str, Any]


def copied(folder: Path) -> Path:
    """The example without data."""
    shutil.copytree(ROOT / "examples" / "web", folder, ignore=shutil.ignore_patterns("__pycache__", "landing", ".lakelet"))
    return folder


def rows(project: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a table as plain values: times in UTC, maps as dicts."""
    (place,) = {path.parent for path in (project / ".lakelet").rglob("_delta_log") if path.parent.name.split("-")[0] == name}
    found = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    return [{column: plain(column, value) for column, value in row.items()} for row in found]


def plain(column: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    return dict(value) if column == "_misfits" and value else value


def check(project: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table equals what the files that have arrived say; returns that."""
    wanted = expected(project / "landing", KEY)
    events = rows(project, "web_events")
    compare("web_events", without("_file_name", *TOKENS, found=events), without(*TOKENS, found=wanted["web_events"]))
    of_tokens = values_of_tokens(events, wanted["web_events"])

    def clear(found: Iterable[Row]) -> list[dict[str, Any]]:
        return [{name: of_tokens[name].get(value) if name in TOKENS else value for name, value in row.items()} for row in found]

    assert {row["_file_name"] for row in events} <= {path.name for path in (project / "landing").iterdir()}
    compare("web_events", clear(without("_file_name", found=events)), wanted["web_events"])
    compare("pages_daily", rows(project, "pages_daily"), wanted["pages_daily"])

    bought, items, tags = (rows(project, name) for name in ("purchases", "purchases_items", "purchases_items_tags"))
    identity = {row["_key"]: {name: row[name] for name in ("event_id", "event_time", "user")} for row in bought}
    assert len(identity) == len(bought), "two purchases have one key"
    item = {row["_key"]: {**identity[row["_parent_key"]], "item": row["_position"]} for row in items}
    assert len(item) == len(items), "two items have one key"
    compare("purchases", clear(without("_key", found=bought)), wanted["purchases"])
    compare("purchases_items", clear(nested(items, item, "_key")), wanted["purchases_items"])
    compare("purchases_items_tags", clear({**row, "tag": at} for row, at in positions(tags, item)), wanted["purchases_items_tags"])
    return wanted


def values_of_tokens(found: Iterable[Row], wanted: Iterable[Row]) -> dict[str, dict[str, str]]:
    """Which value a token stands for, by column: rows of one event tell it. Each value has one token, and that no other value."""
    masked = ("event_id", "event_time", "type", "person", "page", "duration_ms")
    known = {tuple(row[name] for name in masked): row for row in wanted}
    pairs: dict[str, set[tuple[str, str]]] = {name: set() for name in TOKENS}
    for row in found:
        event = known[tuple(row[name] for name in masked)]
        for name in TOKENS:
            pairs[name].add((row[name], event[name]))
    for name, both in pairs.items():
        assert len({token for token, _ in both}) == len({value for _, value in both}) == len(both), f"tokens of {name} are not one to one"
        assert {len(token) for token, _ in both} == {26 if name == "user" else 15}
    return {name: dict(both) for name, both in pairs.items()}


def without(*columns: str, found: Iterable[Row]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in columns} for row in found]


def nested(found: Iterable[Row], of_key: Mapping[str, Row], key: str) -> list[dict[str, Any]]:
    """Rows with what their key means in place of keys and positions."""
    return [{**of_key[row[key]], **{name: value for name, value in row.items() if not name.startswith("_")}} for row in found]


def positions(found: list[dict[str, Any]], of_key: Mapping[str, Row]) -> Iterable[tuple[dict[str, Any], int]]:
    return zip(nested(found, of_key, "_parent_key"), [row["_position"] for row in found], strict=True)


def compare(table: str, found: Iterable[Row], wanted: Iterable[Row]) -> None:
    """The same rows, whatever their order and that of the columns."""
    ours, theirs = (Counter(repr(sorted(row.items())) for row in given) for given in (found, wanted))
    assert theirs, f"nothing is expected of {table}"
    assert ours == theirs, f"{table} has {list((ours - theirs).items())[:3]} and lacks {list((theirs - ours).items())[:3]}"
