"""The gold tables in plain Python, kept up to date row by row. Times are microseconds, days are days since 1970, both UTC."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sampledata.contract import Row

HOUR_MICROS = 3_600_000_000
DAY_MICROS = 24 * HOUR_MICROS
RowValues = tuple[Any, ...]


@dataclass
class _Ratio:
    """A sum over a count; NULL while nothing was counted."""

    total: float = 0
    count: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.count += 1

    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Workforce:
    started: int = 0
    received: int = 0
    sent: int = 0
    by_agents: int = 0
    response: _Ratio = field(default_factory=_Ratio)


@dataclass
class _AgentDay:
    assigned: int = 0
    closed: int = 0
    sent: int = 0
    handle: _Ratio = field(default_factory=_Ratio)
    wait: _Ratio = field(default_factory=_Ratio)


class GoldState:
    """What the gold tables need of the silver rows seen so far. Feed every row that its silver table keeps."""

    def __init__(self) -> None:
        self._workforce: defaultdict[tuple[int, str | None], _Workforce] = defaultdict(_Workforce)
        self._agents: defaultdict[tuple[int, str], _AgentDay] = defaultdict(_AgentDay)
        # conversations by (start day, channel), and the conversations that occur in each later step
        self._started: defaultdict[tuple[int, str | None], set[str]] = defaultdict(set)
        steps = ("assistant_escalated", "assistant_resolved", "conversation_assigned", "conversation_closed", "survey_answered")
        self._steps: dict[str, set[str]] = {step: set() for step in steps}
        self._confidence: defaultdict[str, _Ratio] = defaultdict(_Ratio)  # its keys are the conversations in assistant_engaged
        self._takers: Mapping[str, Callable[[Row], None]] = {
            "conversation_started": self._take_started,
            "conversation_assigned": self._take_assigned,
            "conversation_closed": self._take_closed,
            "message_received": self._take_received,
            "message_sent": self._take_sent,
            "assistant_engaged": self._take_engaged,
        }

    def take(self, table: str, row: Row) -> None:
        """Take in one silver row. Rows without `event_at` count nowhere."""
        if row["event_at"] is None:
            return
        if table in self._steps:
            self._steps[table].add(row["conversation_id"])
        if table in self._takers:
            self._takers[table](row)

    def tables(self) -> dict[str, list[RowValues]]:
        """All four tables as they are now, rows sorted by key, values in the order of the contract's columns."""
        return {
            "workforce_hourly": self._workforce_hourly(),
            "agent_daily": self._agent_daily(),
            "channel_funnel": self._channel_funnel(),
            "assistant_deflection": self._assistant_deflection(),
        }

    # --- silver rows

    def _hour(self, row: Row) -> _Workforce:
        at = row["event_at"]
        return self._workforce[at - at % HOUR_MICROS, row["channel"]]

    def _agent(self, row: Row) -> _AgentDay | None:
        agent = row["agent_id"]
        return None if agent is None else self._agents[row["event_at"] // DAY_MICROS, agent]

    def _take_started(self, row: Row) -> None:
        self._hour(row).started += 1
        self._started[row["event_at"] // DAY_MICROS, row["channel"]].add(row["conversation_id"])

    def _take_received(self, row: Row) -> None:
        self._hour(row).received += 1

    def _take_sent(self, row: Row) -> None:
        hour = self._hour(row)
        hour.sent += 1
        if row["sender_kind"] != "agent":
            return
        hour.by_agents += 1
        hour.response.add(row["response_seconds"])
        if agent := self._agent(row):
            agent.sent += 1

    def _take_assigned(self, row: Row) -> None:
        if agent := self._agent(row):
            agent.assigned += 1
            agent.wait.add(row["wait_seconds"])

    def _take_closed(self, row: Row) -> None:
        if row["closed_by"] == "agent" and (agent := self._agent(row)):
            agent.closed += 1
            agent.handle.add(row["handle_seconds"])

    def _take_engaged(self, row: Row) -> None:
        self._confidence[row["conversation_id"]].add(row["confidence"])

    # --- results

    def _workforce_hourly(self) -> list[RowValues]:
        rows = ((*key, h.started, h.received, h.sent, h.by_agents, h.response.value()) for key, h in self._workforce.items())
        return sorted(rows, key=_by_key)

    def _agent_daily(self) -> list[RowValues]:
        rows = [
            (*key, a.assigned, a.closed, a.sent, int(a.handle.total), a.handle.value(), a.wait.value()) for key, a in self._agents.items()
        ]
        return sorted(rows, key=_by_key)

    def _channel_funnel(self) -> list[RowValues]:
        rows = []
        for key, conversations in self._started.items():
            engaged = sum(c in self._confidence for c in conversations)
            assigned, closed, answered = (
                len(conversations & self._steps[step]) for step in ("conversation_assigned", "conversation_closed", "survey_answered")
            )
            rows.append((*key, len(conversations), engaged, assigned, closed, answered, closed / len(conversations)))
        return sorted(rows, key=_by_key)

    def _assistant_deflection(self) -> list[RowValues]:
        rows: list[RowValues] = []
        for key, conversations in self._started.items():
            engaged = {c for c in conversations if c in self._confidence}
            if not engaged:
                continue
            escalated = engaged & self._steps["assistant_escalated"]
            resolved = engaged & self._steps["assistant_resolved"]
            deflected = (engaged & self._steps["conversation_closed"]) - escalated - self._steps["conversation_assigned"]
            ratios = [self._confidence[c] for c in engaged]
            # fsum: a set has no order, the result must have one value
            confidence = _Ratio(math.fsum(r.total for r in ratios), sum(r.count for r in ratios)).value()
            counts = (len(engaged), len(escalated), len(resolved), len(deflected))
            rows.append((*key, *counts, len(deflected) / len(engaged), confidence))
        return sorted(rows, key=_by_key)


def _by_key(row: RowValues) -> tuple[int, str]:
    return row[0], row[1] or ""
