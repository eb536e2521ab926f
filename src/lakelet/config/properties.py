"""`pipelines.*` settings and table properties: which there are, what their values may be, what they do here (RE-20).

Each is looked up without regard to case, as Spark's own pipelines do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakelet.base.errors import nearest_names

FLOW_RETRIES = "pipelines.maxFlowRetryAttempts"
SPARK_FLOW_RETRIES = "spark.sql.pipelines.maxFlowRetryAttempts"
UPDATE_RETRIES = "pipelines.numUpdateRetryAttempts"
TRIGGER = "pipelines.trigger"
TRIGGER_INTERVAL = "pipelines.trigger.interval"
RESET_ALLOWED = "pipelines.reset.allowed"
TOMBSTONES = "pipelines.cdc.tombstoneGCThresholdInSeconds"
DROP_INACTIVE = "pipelines.dropInactiveTables"
QUARANTINE = "lakelet.quarantine"
OWNER = ("lakelet.owner", "owner")
TAGS = ("lakelet.tags", "tags")
PERSONAL_COLUMNS = "lakelet.personalColumns"
_RESCUED, _CORRUPT = "_rescued_data", "_corrupt_record"
LAKELET_PROPERTIES = (QUARANTINE, OWNER[0], TAGS[0], PERSONAL_COLUMNS)
"""Table properties of Lakelet's own."""
SAMPLE_ROWS = "lakelet.sampleRows"
"""Configuration key: how many rows that break a rule the event log keeps for each rule and batch."""
DEFAULT_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 0, 20
MANAGED = "pipelines.autoOptimize.managed"
Z_ORDER = "pipelines.autoOptimize.zOrderCols"
MIN_PAUSE = "spark.sql.pipelines.execution.watchdog.minRetryTime"
MAX_PAUSE = "spark.sql.pipelines.execution.watchdog.maxRetryTime"
MAX_FLOWS = "spark.sql.pipelines.execution.maxConcurrentFlows"

_PREFIX = "pipelines."
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_SHORT_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def look_up(settings: Mapping[str, str], *keys: str) -> str | None:
    """The value of the first of `keys` that is set, whatever its case; None if none is."""
    by_lower = {key.lower(): value for key, value in settings.items()}
    return next((by_lower[key.lower()] for key in keys if key.lower() in by_lower), None)


def owner_in(table_properties: Mapping[str, str]) -> str:
    """Who answers for a table, as its properties say; "" where they do not."""
    return (look_up(table_properties, *OWNER) or "").strip()


def tags_in(table_properties: Mapping[str, str]) -> tuple[str, ...]:
    """The tags of a table: its property has them with commas between them."""
    return _listed_in(look_up(table_properties, *TAGS))


def personal_in(table_properties: Mapping[str, str]) -> tuple[str, ...]:
    """The columns with personal data, as the property of a table names them with commas between them."""
    return _listed_in(look_up(table_properties, PERSONAL_COLUMNS))


def hidden_columns(personal: Iterable[str]) -> frozenset[str]:
    """Names in lower case of the columns whose values no sample shows, from the personal columns of all datasets.

    Where there are any, columns of records that do not fit are among them: such a record may have the value of any column in it.
    """
    named = frozenset(name.lower() for name in personal)
    return named | {_RESCUED, _CORRUPT} if named else named


def _listed_in(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for piece in (text or "").split(",") if (part := piece.strip())))


def sample_rows(parameters: Mapping[str, str]) -> int:
    """How many rows that break a rule are kept for each rule and batch; 0 for none. Raises ValueError."""
    given = look_up(parameters, SAMPLE_ROWS)
    found = DEFAULT_SAMPLE_ROWS if given is None else whole(given)
    if found > MOST_SAMPLE_ROWS:
        raise ValueError(f"a whole number from 0 to {MOST_SAMPLE_ROWS} is expected")
    return found


def whole(text: str) -> int:
    """A number from 0 on. Raises ValueError."""
    if not re.fullmatch(r"\d+", text.strip()):
        raise ValueError("a whole number from 0 on is expected")
    return int(text)


def switch(text: str) -> bool:
    """`true` or `false`. Raises ValueError."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false is expected")
    return text.strip().lower() == "true"


def interval(text: str) -> float:
    """`<number> <second|minute|hour|day>[s]` in seconds (RE-21). Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*(second|minute|hour|day)s?", text.strip().lower())
    if not found:
        raise ValueError("a number and a unit are expected, for example '10 seconds', '1 minute', '2 hours', '1 day'")
    return float(int(found[1]) * _UNITS[found[2]])


def duration(text: str) -> float:
    """A time as Spark's own settings write it, `5s`, `200ms`, in seconds where there is no unit. Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in _SHORT_UNITS:
        raise ValueError("a time is expected, for example '5s' or '2min'")
    return int(found[1]) * _SHORT_UNITS[found[2]]


@dataclass(frozen=True)
class _KnownSetting:
    """`read`: refuses a value that it cannot have. `where`: "table", "pipeline" or both. `idle`: why it does nothing here."""

    name: str
    read: Callable[[str], object] = str
    where: str = "table pipeline"
    idle: str | None = None


_SECTIONS = {"table": "a table's properties", "pipeline": "the pipeline's configuration"}
_KNOWN_SETTINGS = (
    _KnownSetting(RESET_ALLOWED, switch, "table"),
    _KnownSetting(TRIGGER_INTERVAL, interval),
    _KnownSetting(TRIGGER, idle="there is no real-time mode, rows are written batch by batch"),
    _KnownSetting(FLOW_RETRIES, whole),
    _KnownSetting(SPARK_FLOW_RETRIES, whole),
    _KnownSetting(UPDATE_RETRIES, whole, "pipeline"),
    _KnownSetting(MIN_PAUSE, duration, "pipeline"),
    _KnownSetting(MAX_PAUSE, duration, "pipeline"),
    _KnownSetting(MAX_FLOWS, whole, "pipeline"),
    _KnownSetting(TOMBSTONES, whole),
    _KnownSetting(DROP_INACTIVE, switch, "pipeline"),
    _KnownSetting(MANAGED, switch, "table"),
    _KnownSetting(Z_ORDER, where="table"),
    _KnownSetting("pipelines.channel", idle="there is one engine, the version of Lakelet that is installed"),
    _KnownSetting("pipelines.externalMetadata.enabled", idle="columns are changed by the pipeline's own code only"),
    _KnownSetting("pipelines.enableTrackHistory", idle="type 2 change tables need no switch"),
    _KnownSetting("pipelines.externalSink.enabled", idle="sinks need no switch"),
    _KnownSetting(
        "pipelines.tableManagedByMultiplePipelinesCheck.enabled", idle="a table belongs to the pipeline whose storage it lies in"
    ),
    _KnownSetting("pipelines.metrics.flowTimeReporter.enabled", idle="the event log has the times of all flows"),
)
_BY_LOWER = {known.name.lower(): known for known in _KNOWN_SETTINGS}


@dataclass(frozen=True)
class SettingFinding:
    """Finding about one setting: a notice, or that its value cannot be used (`invalid`)."""

    text: str
    invalid: bool = False


def examine(settings: Mapping[str, str], *, of: str, development: bool = False) -> Iterator[SettingFinding]:
    """Return the findings about the `pipelines.*` keys of a pipeline's configuration (`of` "pipeline") or a dataset's (`of` "table").

    `development`: the pipeline says that it runs in development mode.
    """
    for key, value in settings.items():
        known = _BY_LOWER.get(key.lower())
        if known is None:
            if key.lower().startswith(_PREFIX):
                near = "".join(nearest_names(key, [k.name for k in _KNOWN_SETTINGS], limit=1))
                yield SettingFinding(f"{key} has no effect here: no such setting is known" + (f"; did you mean {near}?" if near else ""))
            continue
        try:
            known.read(value)
        except ValueError as problem:
            yield SettingFinding(f"{key} is {value!r}: {problem}", invalid=True)
            continue
        idle = known.idle
        if of not in known.where.split():
            idle = f"it belongs into {_SECTIONS[known.where]}"
        elif development and known.name in (FLOW_RETRIES, SPARK_FLOW_RETRIES, UPDATE_RETRIES) and whole(value):
            idle = "in development mode nothing is tried again"
        if idle:
            yield SettingFinding(f"{key} has no effect here: {idle}")


def trigger_interval(settings: Iterable[Mapping[str, str]]) -> float | None:
    """Seconds between two looks at a flow's inputs, by the first of the settings that says it; None if none does.

    That of a flow in real-time mode is something else, the time between two checkpoints, and is not counted (RE-21).
    """
    for conf in settings:
        if (look_up(conf, TRIGGER) or "").strip().lower() == "realtime":
            return None
        if (text := look_up(conf, TRIGGER_INTERVAL)) is not None:
            return interval(text)
    return None


def reset_allowed(table_properties: Mapping[str, str]) -> bool:
    """Whether a full refresh may empty the table."""
    return (look_up(table_properties, RESET_ALLOWED) or "true").strip().lower() != "false"
