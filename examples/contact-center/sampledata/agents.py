"""The change tables of system A and the gold table over them, in plain Python from the landed change records (docs/system-a.md).

The order in which records land means nothing: what is kept is every record once, by agent and time of the change.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sampledata.gold import DAY_MICROS, RowValues
from sampledata.parsing import as_micros


@dataclass(frozen=True)
class _Version:
    """What an agent was from `start` on, up to `end` (None: still is)."""

    name: str | None
    team: str | None
    site: str | None
    level: int | None
    start: int
    end: int | None = None


@dataclass
class AgentState:
    """All change records landed so far: as they landed, and by agent and time of the change."""

    landed: list[RowValues] = field(default_factory=list)
    changes: defaultdict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))

    def read(self, file: Path) -> None:
        """Take in one landed file; a record that is repeated counts once."""
        for line in file.read_text().splitlines():
            record = json.loads(line)
            at = as_micros(record["changed_at"])
            assert at is not None
            self.changes[record["agent_id"]][at] = record
            self.landed.append((*(record.get(name) for name in ("agent_id", "name", "team", "site", "level", "op")), at))

    def tables(self, agent_daily: Iterable[RowValues]) -> dict[str, list[RowValues]]:
        """Rows of `agent_changes`, and of `agents`, `agents_history` and `team_daily` sorted by key."""
        histories = {agent: list(_history(records)) for agent, records in sorted(self.changes.items())}
        agents = [
            (agent, last["name"], last["team"], last["site"], last["level"])
            for agent, records in sorted(self.changes.items())
            if (last := records[max(records)])["op"] != "D"
        ]
        history = [(agent, v.name, v.team, v.site, v.level, v.start, v.end) for agent, versions in histories.items() for v in versions]
        teams = _team_daily(agent_daily, histories, {a[0] for a in agents})
        return {"agent_changes": self.landed, "agents": agents, "agents_history": history, "team_daily": teams}


def _history(records: dict[int, dict[str, Any]]) -> Iterator[_Version]:
    """A new version whenever team or site changes; a change of name or level is written into the version it belongs to."""
    current: _Version | None = None
    for at in sorted(records):
        record = records[at]
        if record["op"] == "D":
            if current is not None:
                yield replace(current, end=at)
            current = None
            continue
        new = _Version(record["name"], record["team"], record["site"], record["level"], at)
        if current is not None and (current.team, current.site) == (new.team, new.site):
            current = replace(new, start=current.start)
            continue
        if current is not None:
            yield replace(current, end=at)
        current = new
    if current is not None:
        yield current


def _team_daily(agent_daily: Iterable[RowValues], histories: dict[str, list[_Version]], employed: set[str]) -> list[RowValues]:
    """Work by the team that an agent was in when the day ended; NULL for agents in no team then."""
    totals: defaultdict[tuple[int, str | None], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for day, agent, _assigned, closed, sent, *_rest in agent_daily:
        night = (day + 1) * DAY_MICROS
        teams = [v.team for v in histories.get(agent, ()) if v.start < night and (v.end is None or v.end >= night)]
        total = totals[day, teams[0] if teams else None]
        for place, more in enumerate((1, agent in employed, closed, sent)):
            total[place] += more
    return sorted(((*key, *values) for key, values in totals.items()), key=lambda row: (row[0], row[1] or ""))
