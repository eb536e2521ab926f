"""How often a failed flow and a failed update are tried again, and after what pause (RE-12 to RE-14, decision 18). No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.config.properties import FLOW_RETRIES, MAX_PAUSE, MIN_PAUSE, SPARK_FLOW_RETRIES, UPDATE_RETRIES, duration, look_up, whole

FLOW_DEFAULT, UPDATE_DEFAULT = 2, 5
UNLIMITED = 1 << 62
FINAL_CODES = frozenset(
    {
        "EXPECTATION_VIOLATION",
        "STREAM_SOURCE_CHANGED",
        "STREAM_STATE_CHANGED",
        "STREAM_SOURCES_CHANGED",
        "SOURCE_MOVED",
        "KAFKA_DATA_LOST",
        "KAFKA_TOPIC_MISSING",
        "PARTITIONS_CHANGED",
        "SINK_FORMAT_MISSING",
        "UNKNOWN_FIELD_EXCEPTION",
        "CDC_NULL_KEY",
        "CDC_NULL_SEQUENCE",
        "CDC_WHERE_NOT_MET",
        "CDC_STATE_CHANGED",
        "CDC_LOG_GAP",
    }
)
"""Failures that follow from what the flow will meet again, data or its own definition: a new attempt fails in the same way."""


def may_pass(problem: LakeletError) -> bool:
    """Whether another attempt can succeed where nothing but time has passed."""
    return problem.code not in FINAL_CODES and problem.exit_code is ExitCode.FAILED


@dataclass
class Retries:
    """Attempts of one update.

    Args:
        settings: the pipeline's configuration.
        development: True means no retries, False Databricks' defaults for production; None (nobody said) what is set explicitly.
        continuous: flows of a continuous update are tried again without limit.
        attempt: how many updates failed before this one, for the same command.
    """

    settings: Mapping[str, str]
    development: bool | None = None
    continuous: bool = False
    attempt: int = 0
    _failed: dict[str, int] = field(default_factory=dict)

    def flow_limit(self, conf: Mapping[str, str]) -> int:
        """How often a flow may be tried again; `conf` are its own settings, which come first."""
        if self.development:
            return 0
        given = look_up(conf, FLOW_RETRIES, SPARK_FLOW_RETRIES) or look_up(self.settings, FLOW_RETRIES, SPARK_FLOW_RETRIES)
        if self.continuous:
            return UNLIMITED
        return whole(given) if given is not None else FLOW_DEFAULT if self.development is False else 0

    def update_limit(self) -> int:
        """How often the update may be tried again."""
        if self.development:
            return 0
        given = look_up(self.settings, UPDATE_RETRIES)
        default = UNLIMITED if self.continuous else UPDATE_DEFAULT if self.development is False else 0
        return whole(given) if given is not None else default

    def after_flow(self, flow: str, conf: Mapping[str, str], problem: LakeletError) -> tuple[float, str] | None:
        """A flow failed: pause before its next attempt, in seconds, and the count in words; None if the failure is final."""
        limit, failed = self.flow_limit(conf), self._failed.get(flow, 0)
        if not may_pass(problem) or failed >= limit:
            return None
        self._failed[flow] = failed + 1
        return self._pause(failed), _counted(failed + 1, limit)

    def flow_succeeded(self, flow: str) -> None:
        self._failed.pop(flow, None)

    def after_update(self, errors: Sequence[LakeletError]) -> tuple[float, str] | None:
        """The update failed: as `after_flow`. It is tried again if at least one of its flows could succeed."""
        limit = self.update_limit()
        if self.attempt >= limit or not any(map(may_pass, errors)):
            return None
        return self._pause(self.attempt), _counted(self.attempt + 1, limit)

    def _pause(self, failed: int) -> float:
        """Twice as long each time, within bounds."""
        shortest = duration(look_up(self.settings, MIN_PAUSE) or "5s")
        longest = duration(look_up(self.settings, MAX_PAUSE) or "3600s")
        return min(longest, shortest * 2.0 ** min(failed, 40))


def _counted(number: int, limit: int) -> str:
    return f"retry {number}" + (f" of {limit}" if limit < UNLIMITED else "")
