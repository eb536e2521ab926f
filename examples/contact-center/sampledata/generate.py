"""Writes sample input for system A: drops of router log files, and the small state that lets a sample be continued."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from sampledata.agent_changes import agent_change_lines
from sampledata.delivery import Arrival, Carry, Delivery, Position
from sampledata.entries import Episode, utc_text
from sampledata.layout import AGENT_LANDING, LANDING, STATE_FILE, SampleError, agent_path, part_path

FORMAT = 1
FEWEST_ROWS = 200
PART_LINES = 50_000
FEWEST_PARTS = 2  # so that a redelivery can sit in another file of the same drop


@dataclass(frozen=True)
class DropReport:
    """What one drop brought: its number, its files in order, and how many of its lines are redelivered, broken or stale."""

    drop: int
    files: tuple[Path, ...]
    lines: int
    redelivered: int
    broken: int
    stale: int


@dataclass(frozen=True)
class SampleReport:
    """What one call of `generate` wrote. `newest_timestamp` is the newest one landed so far, as text."""

    out: Path
    drops: tuple[DropReport, ...]
    newest_timestamp: str

    @property
    def rows(self) -> int:
        return sum(drop.lines for drop in self.drops)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for drop in self.drops for path in drop.files)


def generate(out: Path, *, rows: int, seed: int, drops: int = 1, append: bool = False, beyond_watermark: bool = False) -> SampleReport:
    """Write `rows` lines in `drops` drops below `out/landing/router_logs`, and the agents' change records of each drop beside them.

    Args:
        out: the sample's folder; must be empty or absent unless `append`.
        rows: lines of this call, broken and redelivered ones included; at least 200 per drop.
        seed: same seed and same calls give the same bytes.
        drops: how many drops the rows are spread over.
        append: continue the sample that `out` holds.
        beyond_watermark: let a few entries of the last drop lie 3 days behind. They count as dropped by the watermark only if
            every drop is ingested in an update of its own.

    Raises:
        SampleError: if the arguments contradict each other or what `out` holds.
    """
    _check_arguments(rows, drops, append, beyond_watermark)
    carry = _continued(out, seed) if append else _fresh(out)
    for folder in (LANDING, AGENT_LANDING):
        (out / folder).mkdir(parents=True, exist_ok=True)
    reports: list[DropReport] = []
    for index in range(drops):
        share = rows // drops + (1 if index < rows % drops else 0)
        stale = beyond_watermark and index == drops - 1
        _write_whole(agent_path(out, carry.next_drop), agent_change_lines(seed, carry.next_drop))
        written, carry = _write_drop(out, Delivery(seed, share, carry, beyond_watermark=stale))
        reports.append(written)
        _write_state(out / STATE_FILE, seed, carry)
    return SampleReport(out, tuple(reports), utc_text(carry.newest_timestamp))


def _check_arguments(rows: int, drops: int, append: bool, beyond_watermark: bool) -> None:
    if drops < 1:
        raise SampleError(f"a sample needs at least one drop, not {drops}", "Give --drops 1 or more.")
    if rows < FEWEST_ROWS * drops:
        what = f"{rows} rows are too few for {drops} drop(s): every drop needs at least {FEWEST_ROWS}"
        raise SampleError(what, f"Give --rows {FEWEST_ROWS * drops} or more, or fewer drops.")
    if beyond_watermark and not append and drops == 1:
        what = "entries beyond the watermark need an earlier drop to be behind of"
        raise SampleError(what, "Give --drops 2 or more, or --append to an existing sample.")


def _fresh(out: Path) -> Carry:
    if out.exists() and not out.is_dir():
        raise SampleError(f"{out} is not a folder", "Give another folder.")
    if out.exists() and any(out.iterdir()):
        todo = "Continue the sample with --append, give another folder, or delete this one."
        raise SampleError(f"{out} is not empty", todo)
    return Carry()


def _continued(out: Path, seed: int) -> Carry:
    path = out / STATE_FILE
    if not path.is_file():
        raise SampleError(f"{out} holds no sample to continue: there is no {STATE_FILE}", "Leave --append out.")
    try:
        state = orjson.loads(path.read_bytes())
        if state["format"] != FORMAT:
            what = f"{path} has format {state['format']}, this version writes format {FORMAT}"
            raise SampleError(what, "Write the sample again into another folder.")
        if state["seed"] != seed:
            todo = f"Give --seed {state['seed']}, or write another sample into another folder."
            raise SampleError(f"the sample in {out} was written with seed {state['seed']}, not {seed}", todo)
        return _carry_from(state["carry"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SampleError(f"{path} cannot be read: {error!r}", "Write the sample again into another folder.") from error


def _carry_from(stored: dict[str, Any]) -> Carry:
    return Carry(
        next_drop=stored["next_drop"],
        next_episode=stored["next_episode"],
        last=Position(*stored["last"]),
        newest_timestamp=stored["newest_timestamp"],
        open_episodes=tuple(Episode(**episode) for episode in stored["open_episodes"]),
        copies=tuple(Arrival(Position(*position), timestamp, line.encode(), None) for position, timestamp, line in stored["copies"]),
    )


def _write_state(path: Path, seed: int, carry: Carry) -> None:
    stored = {
        "next_drop": carry.next_drop,
        "next_episode": carry.next_episode,
        "last": list(carry.last),
        "newest_timestamp": carry.newest_timestamp,
        "open_episodes": [asdict(episode) for episode in carry.open_episodes],
        "copies": [[list(copy.position), copy.timestamp, copy.line.decode()] for copy in carry.copies],
    }
    text = orjson.dumps({"format": FORMAT, "seed": seed, "carry": stored}, option=orjson.OPT_INDENT_2)
    _write_whole(path, [text])


def _write_drop(out: Path, delivery: Delivery) -> tuple[DropReport, Carry]:
    """Write the files of a drop."""
    drop, lines = delivery.before.next_drop, delivery.lines()
    parts = max(FEWEST_PARTS, -(-delivery.rows // PART_LINES))
    per_part = -(-delivery.rows // parts)
    files = []
    for part in range(parts):
        path = part_path(out, drop, part)
        _write_whole(path, islice(lines, per_part))
        files.append(path)
    tally = delivery.tally
    report = DropReport(drop, tuple(files), tally.lines, tally.redelivered, tally.broken, tally.stale)
    return report, delivery.carry()


def _write_whole(path: Path, lines: Iterable[bytes]) -> None:
    """Write the lines under a dot-prefixed name, then rename: a reader sees the whole file or none."""
    hidden = path.with_name(f".{path.name}.tmp")
    with hidden.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
    os.replace(hidden, path)
