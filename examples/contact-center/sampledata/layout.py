"""Where a sample keeps what: landed files and expected results."""

from __future__ import annotations

import re
from pathlib import Path

LANDING = Path("landing", "router_logs")
AGENT_LANDING = Path("landing", "agent_changes")
STATE_FILE = "state.json"
FACTS_FILE = "facts.json"
EXPECTATIONS_FILE = "expectations.json"
_PART = re.compile(r"drop_(\d+)-part-(\d+)\.json")


class SampleError(ValueError):
    """A sample cannot be written, continued or compared with: what is wrong, and in a second line what to do."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(f"{what}\n  {todo}")


def part_path(sample: Path, drop: int, part: int) -> Path:
    """The landed file of one part of one drop."""
    return sample / LANDING / f"drop_{drop:03d}-part-{part:03d}.json"


def agent_path(sample: Path, drop: int) -> Path:
    """The landed file with the agents' change records of one drop."""
    return sample / AGENT_LANDING / f"drop_{drop:03d}.json"


def expected_folder(sample: Path, drop: int) -> Path:
    """The folder with the right answer after that drop."""
    return sample / "expected" / f"drop_{drop:03d}"


def landed_drops(sample: Path) -> dict[int, list[Path]]:
    """The landed files by drop, drops and files in the order in which they landed.

    Raises:
        SampleError: if the folder holds none.
    """
    found = []
    for path in (sample / LANDING).glob("*.json"):
        match = _PART.fullmatch(path.name)
        if match:
            found.append((int(match[1]), int(match[2]), path))
    if not found:
        raise SampleError(f"{sample} holds no sample: no file below {LANDING}", "Write one with: python generate.py DIR")
    drops: dict[int, list[Path]] = {}
    for drop, _, path in sorted(found):
        drops.setdefault(drop, []).append(path)
    return drops


def expected_of(sample: Path, drop: int | None) -> Path:
    """The existing folder with the right answer after `drop`; None means the newest landed one.

    Raises:
        SampleError: if there is none for that drop.
    """
    wanted = max(landed_drops(sample)) if drop is None else drop
    folder = expected_folder(sample, wanted)
    if not folder.is_dir():
        todo = "Compute it with sampledata.write_expected, or write the sample again."
        raise SampleError(f"{sample} holds no expected results after drop {wanted}", todo)
    return folder
