"""The reason why a query goes to Spark."""

from __future__ import annotations


class NotSame(Exception):
    """DuckDB is not known to give what Spark gives. The text says why: half a sentence, lower case, without a full stop."""
