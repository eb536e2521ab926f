"""The version of this package; `pyproject.toml` has the same."""

from __future__ import annotations

VERSION = "0.1.0"
