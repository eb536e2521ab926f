"""Errors of the checks that flows of SQL and Python share in the words of SQL: a call names arguments, a statement has clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakelet.base.errors import LakeletError, Location

_WORDS = {
    'stored_as_scd_type="2"': "STORED AS SCD TYPE 2",
    'stored_as_scd_type="bitemporal"': "STORED AS BITEMPORAL",
    "stored_as_scd_type": "STORED AS",
    "track_history_column_list": "TRACK HISTORY ON",
    "track_history_except_column_list": "TRACK HISTORY ON * EXCEPT",
    "track_history_*": "TRACK HISTORY ON",
    "ignore_null_updates_column_list": "IGNORE NULL UPDATES ON",
    "ignore_null_updates_except_column_list": "IGNORE NULL UPDATES ON * EXCEPT",
    "ignore_null_updates": "IGNORE NULL UPDATES",
    "apply_as_deletes": "APPLY AS DELETE WHEN",
    "apply_as_truncates": "APPLY AS TRUNCATE WHEN",
    "except_column_list": "COLUMNS * EXCEPT",
    "column_list": "COLUMNS",
    "columns_to_update": "COLUMNS TO UPDATE",
    "system_sequence_by": "SYSTEM SEQUENCE BY",
    "sequence_by": "SEQUENCE BY",
    "keys": "KEYS",
    "replace_using": "REPLACE USING",
    "replace_where": "REPLACE WHERE",
}
_ARGUMENT = re.compile("|".join(rf"(?<![\w]){re.escape(name)}(?!\w)" for name in sorted(_WORDS, key=len, reverse=True)))


@contextmanager
def in_sql_words(where: Location, places: Mapping[str, Location]) -> Iterator[None]:
    """Say the errors that leave the block in SQL's words. They are about the statement at `where`, or one of its clauses."""
    try:
        yield
    except LakeletError as error:
        named = _ARGUMENT.search(error.what)
        stem = named[0].partition("=")[0].rstrip("*") if named else ""
        place = next((place for name, place in places.items() if stem and name.startswith(stem)), where)
        what, todo = (None if text is None else _ARGUMENT.sub(lambda m: _WORDS[m[0]], text) for text in (error.what, error.todo))
        raise LakeletError(error.code, str(what), where=place, why=error.why, todo=todo, nearest=error.nearest) from None
