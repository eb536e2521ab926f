"""How the benchmarks say their figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def quartiles(values: Sequence[float], digits: int = 2) -> str:
    """The median, with the lower and the upper quartile where there is more than one value."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
