"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository."""

SHARED_DATA = ROOT.parent / "shared" / "data"
"""Real files that are not part of the repository; tests that read them are skipped where it is absent (`real_data`)."""
