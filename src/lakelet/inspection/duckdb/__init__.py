"""Queries that DuckDB answers as Spark would: what it is known to say the same way is translated, all else is refused with a reason."""
