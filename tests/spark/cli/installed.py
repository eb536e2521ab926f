"""The installed command, which tests run as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

LAKELET = Path(sys.executable).with_name("lakelet")
NEEDS_LAKELET = pytest.mark.skipif(not LAKELET.exists(), reason=f"{LAKELET} is not installed")
