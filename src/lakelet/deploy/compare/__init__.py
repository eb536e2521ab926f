"""Local and hosted tables side by side: schema, rows, counts of expectations, keys that differ."""

from lakelet.deploy.compare.datasets import ComparisonRequest, compare
from lakelet.deploy.compare.values import Comparison, DatasetDifference

__all__ = ["Comparison", "ComparisonRequest", "DatasetDifference", "compare"]
