"""Where things are."""

import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository."""

SHARED_DATA = ROOT.parent / "shared" / "data"
"""Real files that are not part of the repository; tests that read them are skipped where it is absent (`real_data`)."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar file into a folder; early patch releases of Python 3.10 and 3.11 have no filters."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else packed.extractall(folder)
