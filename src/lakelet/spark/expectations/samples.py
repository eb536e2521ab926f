"""A few rows that break each rule, chosen where the rows are counted: nothing is read again, and what is kept is bounded.

In: a rule, the rows and the condition under which a row breaks it. Out: a column for `observe`, and what it gave as values. A row is shown
by the columns that the rule reads and those that identify it. The same rows give the same sample: they are ordered by a hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.names import quoted
from lakelet.base.redaction import HIDDEN
from lakelet.language.model import Expectation
from lakelet.language.sql_text.tokens import plain_tokens
from lakelet.storage.rule_counts import RowSample

MOST_CHARACTERS = 200
"""Characters of a value that are kept."""
_MOST_COLUMNS = 12
_BROKEN = "_corrupt_record"
"""The name under which rescued data has a record that does not parse."""
_PLAIN = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
_HASHED = (*_PLAIN, T.StringType, T.BinaryType)


@dataclass(frozen=True)
class SamplePolicy:
    """Which part of the rows that break rules is kept.

    Attributes:
        rows: most rows for each rule and batch; 0 keeps none.
        personal: names of columns, in lower case, whose values are never kept (`hidden_columns`).
        keys: columns that identify a row, where the rows have them.
    """

    rows: int = 0
    personal: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()

    def hides(self, name: str) -> bool:
        """Whether the values of a column are not to be seen."""
        return name.lower() in self.personal

    def value_of(self, name: str) -> Column:
        """A column of the rows as it may be shown, under its name."""
        return (F.lit(HIDDEN) if self.hides(name) else F.col(quoted(name))).alias(name)

    def columns_for(self, rule: Expectation, schema: T.StructType) -> list[T.StructField]:
        """The columns by which a row that breaks the rule is shown: the keys, then those that the rule reads."""
        lower = [name.lower() for name in schema.names]
        fields = {name: field for name, field in zip(lower, schema.fields, strict=True) if lower.count(name) == 1}
        names = [key.lower() for key in self.keys] + [name.lower() for name in columns_named(rule.text, schema.names)]
        return [fields[name] for name in dict.fromkeys(names) if name in fields][:_MOST_COLUMNS]

    def column(self, rule: Expectation, schema: T.StructType, failed: Column, file: str | None) -> Column | None:
        """A column for `observe`: JSON of the sample of a rule; None where it has nothing to show. `file`: the column with a row's file."""
        columns = self.columns_for(rule, schema)
        if not self.rows or not columns:
            return None
        values = [(F.lit(HIDDEN) if self.hides(one.name) else _bounded(one)).alias(f"c{at}") for at, one in enumerate(columns)]
        where = F.lit(None).cast("string") if file is None else F.col(file)
        hashed = [F.col(quoted(one.name)) for one in columns if isinstance(one.dataType, _HASHED)]
        order = F.xxhash64(*hashed) if hashed else F.lit(0)
        kept = F.min_by(F.when(failed, F.struct(*values, where.alias("file"))), F.when(failed, order), self.rows)

        def shown(row: Column) -> Column:
            texts = (row.getField(f"c{at}").cast("string").alias(one.name) for at, one in enumerate(columns))
            return F.struct(F.struct(*texts).alias("row"), row.getField("file").alias("file"))

        return F.to_json(F.transform(kept, shown), {"ignoreNullFields": "false"})


NO_SAMPLES = SamplePolicy()


def _bounded(field: T.StructField) -> Column:
    """A value that needs no more than a few hundred bytes. A text that is too long keeps one character more than is shown."""
    value = F.col(quoted(field.name))
    if isinstance(field.dataType, _PLAIN):
        return value
    text = F.base64(F.substring(value, 1, MOST_CHARACTERS)) if isinstance(field.dataType, T.BinaryType) else value.cast("string")
    return F.substring(text, 1, MOST_CHARACTERS + 1)


def rows_in_sample(observed: str | None) -> tuple[tuple[str, str | None], ...]:
    """The rows of a sample as it was observed, each once: its columns as JSON text, and its file."""
    found = json.loads(observed) if observed else ()
    rows = ((json.dumps({name: cut(text) for name, text in one["row"].items()}, ensure_ascii=False), one.get("file")) for one in found)
    return tuple(dict.fromkeys(rows))


def cut(text: str | None) -> str | None:
    """A text of at most `MOST_CHARACTERS` and a sign that there was more."""
    return text if text is None or len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…"


def columns_named(constraint: str, columns: Iterable[str]) -> list[str]:
    """The columns that a constraint names, in their own order; words in its strings are not names."""
    words = _words(constraint)
    return [name for name in columns if name.lower() in words]


@lru_cache(maxsize=1024)
def _words(constraint: str) -> frozenset[str]:
    return frozenset(token.value.lower() for token in plain_tokens(constraint) if token.is_name)


def texts_of_records(seen: Mapping[str, Any], policy: SamplePolicy) -> dict[str, Any]:
    """What the first records say that a source could not read whole, by the names that `SourceRecords` gives them.

    `seen`: the metrics observed of the source. The text of a broken record may have the value of any column in it, so it is hidden where
    the pipeline has a personal column.
    """
    found: dict[str, Any] = {}
    for kind in ("first", "corrupt"):
        text = seen.get(f"{kind}_text")
        if text is not None:
            column, value = _first_member(text)
            found[f"{kind}_text"] = HIDDEN if policy.personal else cut(value if column == _BROKEN else text)
    if seen.get("rescued_text") is not None:
        column, value = _first_member(seen["rescued_text"])
        hidden = policy.hides(column) if column else bool(policy.personal)
        found |= {"rescued_column": column or None, "rescued_text": HIDDEN if hidden else cut(value)}
    return found


def _first_member(text: str) -> tuple[str, str]:
    """The first name and value of a JSON object whose end may be missing; no name and the text itself of any other text."""
    decoder = json.JSONDecoder()
    try:
        name, stop = decoder.raw_decode(text, 1)
        start = text.index(":", stop) + 1
    except ValueError:
        return "", text
    if not text.startswith("{") or not isinstance(name, str):
        return "", text
    try:
        value, _ = decoder.raw_decode(text, start)
    except ValueError:  # the value was cut off
        return name, text[start:].removeprefix('"')
    return name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_earlier(found: Sequence[RowSample], earlier: Sequence[RowSample], policy: SamplePolicy) -> tuple[RowSample, ...]:
    """The samples of new rows, filled up by those of rows that were there before, as the policy of today shows them."""
    result: dict[tuple[str, str], dict[RowSample, None]] = {}
    for sample in (*found, *(replace(one, row_json=_remasked(one.row_json, policy)) for one in earlier)):
        kept = result.setdefault((sample.dataset, sample.name), {})
        if len(kept) < policy.rows:
            kept[sample] = None
    return tuple(sample for kept in result.values() for sample in kept)


def _remasked(row_json: str, policy: SamplePolicy) -> str:
    values = json.loads(row_json)
    return json.dumps({name: HIDDEN if policy.hides(name) else value for name, value in values.items()}, ensure_ascii=False)


__all__ = ["NO_SAMPLES", "SamplePolicy", "columns_named", "cut", "rows_in_sample", "texts_of_records", "with_earlier"]
