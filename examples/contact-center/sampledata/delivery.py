"""The order in which entries land: late, out of order, twice, and now and then cut off.

The promise about lateness holds by construction. Entries land in order of their arrival, an entry's timestamp is never after its
arrival, and it arrives at most `MAX_DELAY` after its timestamp: so it is at most `MAX_DELAY` behind anything landed before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeVar

from sampledata.entries import (
    HOUR,
    MAX_DELAY,
    MINUTE,
    SECOND,
    SPECIMENS,
    Entry,
    Episode,
    entries,
    stale_entries,
    with_receive_time,
)

T = TypeVar("T")

FIRST_ARRIVAL = 1_772_352_000_120  # 2026-03-01T08:00:00.120Z
DROP_SPAN = 6 * HOUR
SPECIMEN_GAP = 20 * SECOND
SPECIMEN_LINES = 95  # what the specimens of a drop bring, about
EPISODE_LINES = 11.3  # average of all other episodes, redeliveries included

REDELIVERY_RATE = 0.02
BROKEN_RATE = 0.0005
FEWEST_BROKEN = 2
STALE_ENTRIES = 5
STALE_BEHIND = 72 * HOUR

# What may cross into the next drop. The rest of what is under way never lands, as when a service stops.
OPEN_EPISODES = 25
CROSSING_COPIES = 10


class Position(NamedTuple):
    """Place of an entry in the order of arrival; `copy` is 0 for the first delivery."""

    arrival: int
    number: int
    place: int
    copy: int


BEFORE_ALL = Position(FIRST_ARRIVAL, -1, -1, 0)


class Arrival(NamedTuple):
    """One entry under way. A copy carries no episode."""

    position: Position
    timestamp: int
    line: bytes
    episode: Episode | None


@dataclass(frozen=True)
class Carry:
    """Everything a drop hands to the next one."""

    next_drop: int = 1
    next_episode: int = 0
    last: Position = BEFORE_ALL
    newest_timestamp: int = 0
    open_episodes: tuple[Episode, ...] = ()
    copies: tuple[Arrival, ...] = ()


@dataclass
class Tally:
    """What one drop brought, counted while it is delivered."""

    lines: int = 0
    redelivered: int = 0
    broken: int = 0
    stale: int = 0


@dataclass
class Delivery:
    """One drop under way: iterate `lines()` to the end, then ask for `carry()`.

    Args:
        seed: the sample's seed.
        rows: how many lines the drop holds, broken and redelivered ones included.
        before: what the drop before handed over.
        beyond_watermark: also land a few entries three days behind.
    """

    seed: int
    rows: int
    before: Carry
    beyond_watermark: bool = False
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self._rng = Random(f"{self.seed}/delivery/{self.before.next_drop}")
        self._stream = _Stream(self.seed, self.rows, self.before)
        self._newest = self.before.newest_timestamp
        self._latest_line = b""
        self._recent: Entry | None = None  # landed last, and not late: safe to deliver again within some hours

    def lines(self) -> Iterator[bytes]:
        """The drop's lines in the order of the files, without line ends."""
        broken, stale = self._extra_lines()
        repeat_here, remember, repeat_remembered = self.rows // 8, self.rows // 4, self.rows * 5 // 8
        remembered: Entry | None = None
        for index in range(self.rows):
            if index in broken:
                line = self._cut_off()
            elif index in stale:
                line = stale[index].line
                self.tally.stale += 1
            elif index == repeat_here:
                line = self._repeat(self._recent)
            elif index == repeat_remembered:
                line = self._repeat(remembered)
            else:
                line = self._next_entry()
            if index == remember:
                remembered = self._recent
            self.tally.lines += 1
            yield line

    def carry(self) -> Carry:
        """What the next drop has to know. The entry landed last is delivered again there."""
        again = []
        if self._recent is not None:
            position = Position(self._stream.clock + SECOND, -1, 0, 1)
            again.append(Arrival(position, self._recent.timestamp, self._recent.line, None))
        return Carry(
            next_drop=self.before.next_drop + 1,
            next_episode=self._stream.next_episode,
            last=self._stream.last,
            newest_timestamp=self._newest,
            open_episodes=self._stream.open_episodes(),
            copies=(*again, *self._stream.copies()),
        )

    def _next_entry(self) -> bytes:
        arrival = self._stream.pop()
        self._latest_line = arrival.line
        self._newest = max(self._newest, arrival.timestamp)
        if arrival.episode is None:
            self.tally.redelivered += 1
            return with_receive_time(arrival.line, arrival.position.arrival)
        if arrival.position.arrival - arrival.timestamp <= MINUTE:
            self._recent = Entry(arrival.position.arrival, arrival.timestamp, arrival.line)
        if self._rng.random() < REDELIVERY_RATE:
            self._stream.deliver_again(arrival, self._rng)
        return arrival.line

    def _repeat(self, entry: Entry | None) -> bytes:
        """The entry once more, or the next one if there is none or it would be too late by now."""
        if entry is None or self._stream.clock - entry.timestamp > MAX_DELAY:
            return self._next_entry()
        self.tally.redelivered += 1
        return with_receive_time(entry.line, self._stream.clock)

    def _cut_off(self) -> bytes:
        """The first part of the entry landed last. An object without its closing brace is never JSON."""
        self.tally.broken += 1
        text = self._latest_line.decode()
        return text[: self._rng.randint(20, len(text) - 1)].rstrip().encode()

    def _extra_lines(self) -> tuple[set[int], dict[int, Entry]]:
        """Where broken lines stand, and where which stale entries stand. Never before the first ten lines of the drop."""
        broken_count = max(FEWEST_BROKEN, round(self.rows * BROKEN_RATE))
        stale_count = STALE_ENTRIES if self.beyond_watermark else 0
        taken = {self.rows // 8, self.rows // 4, self.rows * 5 // 8}
        free = self._rng.sample([i for i in range(10, self.rows) if i not in taken], broken_count + stale_count)
        stale = stale_entries(
            self.seed,
            self.before.next_drop,
            timestamp=self.before.newest_timestamp - STALE_BEHIND,
            arrival=self.before.last.arrival,
            count=stale_count,
        )
        return set(free[:broken_count]), dict(zip(free[broken_count:], stale, strict=True))


class _Stream:
    """Entries and copies of entries in order of arrival: what earlier drops left open, then new episodes at the drop's pace."""

    def __init__(self, seed: int, rows: int, before: Carry) -> None:
        self._seed, self._drop = seed, before.next_drop
        self._rng = Random(f"{seed}/starts/{self._drop}")
        self._heap: list[Arrival] = list(before.copies)
        self._started = 0
        self._origin = before.last.arrival
        self._next_start = self._origin
        self.next_episode, self.last, self.clock = before.next_episode, before.last, self._origin
        for episode in before.open_episodes:
            self._launch(episode, after=before.last)
        heapq.heapify(self._heap)
        episodes = max(1.0, (rows - SPECIMEN_LINES - len(self._heap)) / EPISODE_LINES)
        self._pace = DROP_SPAN / episodes

    def pop(self) -> Arrival:
        """The next one to arrive."""
        while not self._heap or self._next_start <= self._heap[0].position.arrival:
            self._start_episode()
        arrival = heapq.heappop(self._heap)
        self.clock = arrival.position.arrival
        if arrival.episode is not None:
            self.last = arrival.position
        return arrival

    def deliver_again(self, arrival: Arrival, rng: Random) -> None:
        """Let a copy arrive later: mostly at once, sometimes within the hour, seldom after hours."""
        chance = rng.random()
        limit = 3 * SECOND if chance < 0.5 else 90 * MINUTE if chance < 0.8 else 5 * HOUR
        left = MAX_DELAY - (arrival.position.arrival - arrival.timestamp)
        position = arrival.position._replace(arrival=arrival.position.arrival + rng.randint(0, max(0, min(limit, left))), copy=1)
        heapq.heappush(self._heap, Arrival(position, arrival.timestamp, arrival.line, None))

    def open_episodes(self) -> tuple[Episode, ...]:
        """Some of the episodes that still have entries to deliver, spread evenly over the time of their next entry."""
        waiting = dict.fromkeys(a.episode for a in sorted(self._heap) if a.episode is not None)
        return _spread(tuple(waiting), OPEN_EPISODES)

    def copies(self) -> tuple[Arrival, ...]:
        """Some of the copies still under way."""
        return _spread(tuple(sorted(a for a in self._heap if a.episode is None)), CROSSING_COPIES)

    def _start_episode(self) -> None:
        self._launch(Episode(self.next_episode, self._next_start, self._drop, self._started))
        self.next_episode += 1
        self._started += 1
        if self._started < SPECIMENS:
            self._next_start += SPECIMEN_GAP
        else:
            self._next_start += int(self._pace * self._rng.uniform(0.5, 1.5))

    def _launch(self, episode: Episode, after: Position | None = None) -> None:
        for place, (arrival, timestamp, line) in enumerate(entries(self._seed, episode)):
            position = Position(arrival, episode.number, place, 0)
            if after is None or position > after:
                heapq.heappush(self._heap, Arrival(position, timestamp, line, episode))


def _spread(items: tuple[T, ...], count: int) -> tuple[T, ...]:
    """At most `count` of the items, evenly spread, the first one included."""
    if len(items) <= count:
        return items
    return tuple(items[i * len(items) // count] for i in range(count))
