"""Pipelines written in SQL (dlt-semantics section 2): their text becomes the same values as Python's decorators. Layer 1: no Spark.

`declare` reads one source; the caller has cut it into cells, of which a plain file has one.
"""

from lakelet.sql.declaring import declare
from lakelet.sql.text import Cell

__all__ = ["Cell", "declare"]
