"""Where Auto Loader is meant to differ from Spark's reader: numbered rules, each with what must come out instead, and its source.

A rule stands between the question and Spark: it may ask Spark otherwise (other options, another schema) and may change the answer. What the
rules of a combination make of Spark's answer together is what Auto Loader has to return. The numbers are those of docs/semantics.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from tests.spark.autoloader.parity import text_files, typed_files
from tests.spark.autoloader.parity.combinations import Reading
from tests.spark.autoloader.parity.laboratory import Failure, Laboratory, Outcome, Table


class Ask(Protocol):
    """Spark, or Spark behind further rules."""

    def __call__(self, reading: Reading, kind: str) -> Outcome: ...


@dataclass(frozen=True)
class Rule:
    """One difference that is meant.

    Args:
        id: its number.
        what: the rule in words.
        source: where it is documented.
        applies: whether it speaks of a combination.
        instead: what must come out, asked of Spark.
        example: a combination that the rule changes: grid, kind of file, choices.
    """

    id: str
    what: str
    source: str
    applies: Callable[[Reading, str], bool]
    instead: Callable[[Ask, Reading, str], Outcome]
    example: tuple[str, str, str]


def with_options(reading: Reading, *without: str, **options: str) -> Reading:
    kept = {k: v for k, v in reading.options if k not in without}
    return replace(reading, options=tuple(sorted({**kept, **options}.items())))


def corrupt_name(reading: Reading) -> str:
    return reading.get("columnNameOfCorruptRecord") or dict(reading.settings).get("spark.sql.columnNameOfCorruptRecord", "_corrupt_record")


def charset_of(reading: Reading) -> str:
    """The charset that is given."""
    return reading.get("encoding") or reading.get("charset")


def columns_of(ddl: str, between: str = " ") -> dict[str, str]:
    """The declared columns and their types."""
    if not ddl:
        return {}
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(ddl):
        quoted ^= letter == "`"
        depth += 0 if quoted else {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and not depth and not quoted:
            parts.append(ddl[start:at])
            start = at + 1
    return dict(_name_and_type(part.strip(), between) for part in [*parts, ddl[start:]])


def _name_and_type(column: str, between: str) -> tuple[str, str]:
    if column.startswith("`"):
        name, kind = column[1:].split("`", 1)
        return name, kind.removeprefix(between)
    name, kind = column.split(between, 1)
    return name, kind


def ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def all_texts(reading: Reading, surplus: int = 0) -> Reading:
    """The reading with its columns as texts, and some more of them: a record that is broken now is no record at all."""
    names = [*columns_of(reading.schema or ""), corrupt_name(reading), *(f"surplus_{n}" for n in range(surplus))]
    return replace(with_options(reading, "mode"), schema=ddl(dict.fromkeys(names, "STRING")))


def broken_texts(ask: Ask, reading: Reading, kind: str) -> list[str | None] | Failure:
    """Of each record in a PERMISSIVE read its text if it is no record. CSV records with more values than columns are none of these."""
    found: list[str | None] = []
    for surplus in range(4 if reading.format == "csv" else 1):
        texts = ask(all_texts(reading, surplus), kind)
        if isinstance(texts, Failure):
            return texts
        broken = [row[corrupt_name(reading)] for row in texts.rows]
        found = [one and other for one, other in zip(found, broken, strict=True)] if found else broken
    return found


def declared(types: Mapping[str, str]) -> str:
    """Columns that Spark shows as DDL, whatever the session takes TIMESTAMP for."""
    quoted = {name: re.sub(r"([<,])([^<>,:][^<>,]*):", r"\1`\2`:", kind) for name, kind in types.items()}
    return ddl({name: re.sub(r"\btimestamp\b", "timestamp_ltz", kind) for name, kind in quoted.items()})


# --- what the rules do ---


def _header_assumed(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(with_options(reading, header="true"), kind)


def _texts(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(with_options(reading, "prefersDecimal"), kind)
    if isinstance(found, Failure) or reading.schema is not None:
        return found
    names = [name for name in found.types if name != corrupt_name(reading)]
    return ask(replace(reading, schema=ddl(dict.fromkeys(names, "STRING"))), kind) if names else found


def _no_corrupt_column(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    return found if isinstance(found, Failure) or reading.schema is not None else found.without(corrupt_name(reading))


def _hinted_corrupt_column(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    name = corrupt_name(reading)
    if isinstance(found, Failure) or (name in found.types and not reading.rescues):
        return found
    given = replace(reading, schema=declared({**found.types, name: "string"}))
    return _misfits_are_rescued_only(ask, given, kind) if reading.rescues else ask(given, kind)


def _nothing_to_infer(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    if isinstance(found, Table) and not set(found.types) - {corrupt_name(reading)}:
        return Failure("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE")
    return found


def _only_broken_records_count(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(with_options(reading, "mode"), kind)
    if isinstance(found, Failure):
        return found
    broken = broken_texts(ask, replace(reading, schema=reading.schema or declared(found.types)), kind)
    if isinstance(broken, Failure):
        return found
    if reading.get("mode") == "FAILFAST":
        return Failure("FAILED_READ_FILE") if any(broken) else found
    return Table(found.types, tuple(row for row, text in zip(found.rows, broken, strict=True) if text is None))


def _misfits_are_rescued_only(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, broken, name = ask(reading, kind), broken_texts(ask, reading, kind), corrupt_name(reading)
    if isinstance(found, Failure) or isinstance(broken, Failure):
        return found
    return Table(found.types, tuple({**row, name: text} for row, text in zip(found.rows, broken, strict=True)))


def each_value(found: Outcome, new: Callable[[Any], Any]) -> Outcome:
    if isinstance(found, Failure):
        return found
    return Table(found.types, tuple({name: new(value) for name, value in row.items()} for row in found.rows))


def _texts_are_unicode(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return each_value(ask(reading, kind), unicode)


def _broken_texts_are_decoded(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, name, charset = ask(reading, kind), corrupt_name(reading), charset_of(reading)
    if isinstance(found, Failure) or name not in found.types:
        return found
    texts = [(row[name] or "").encode("utf-8", "surrogateescape").decode(charset, "replace") for row in found.rows]
    return Table(found.types, tuple({**row, name: row[name] and text} for row, text in zip(found.rows, texts, strict=True)))


def _no_mark(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return each_value(ask(reading, kind), lambda value: value.removeprefix("\ufeff") if isinstance(value, str) else value)


def _decoded(ask: Ask, reading: Reading, kind: str) -> Outcome:
    charset = reading.get("encoding").lower()
    if charset.startswith("utf"):
        return _any_charset(ask, reading, kind)
    found = ask(with_options(reading, "encoding"), kind)
    return each_value(found, lambda value: value.encode("utf-8", "surrogateescape").decode(charset, "replace"))


def as_if(other: str) -> Callable[[Ask, Reading, str], Outcome]:
    """What Spark makes of another kind, whose values begin with "no ": they fit texts only."""

    def instead(ask: Ask, reading: Reading, kind: str) -> Outcome:
        return each_value(ask(reading, other), lambda value: value.replace("no ", "") if isinstance(value, str) else value)

    return instead


def _last_of_a_key(ask: Ask, reading: Reading, kind: str) -> Outcome:
    def new(value: Any) -> Any:
        return '{"k":1,"k":2}' if value == '{"k":2}' else value

    return each_value(ask(reading, "last-of-a-key"), new)


def _source_texts(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    if isinstance(found, Failure):
        return found
    source = {
        '"NaN"': "NaN",
        "-2500.0": "-2.5e3",
        "1.234567895E8": "123456789.5",
        "100.0": "1e2",
        "1000.0": "1e3",
        '"Infinity"': "1e400",
        '"-Infinity"': "-Infinity" if kind == "not-numbers" else "-1e400",
        "0.0": "1e-400",
        '{"s":"y","k":3}': '{"s":"y", "k" : 3 }',
    }
    source |= {"one-object": {"[1,2]": f"[1,{reading.ends} 2]"}, "nested": {"[4]": "[ 4 ]"}}.get(kind, {})
    content = reading.ends.join(line for line in text_files.JSON[kind] if isinstance(line, str))
    source = {value: text for value, text in source.items() if text in content}
    texts = [name for name, what in found.types.items() if what == "string"]
    return Table(found.types, tuple({**row, **{name: source.get(row[name], row[name]) for name in texts}} for row in found.rows))


def _text_of_the_first_value(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, broken, name = ask(reading, kind), broken_texts(ask, reading, kind), corrupt_name(reading)
    if isinstance(found, Failure) or isinstance(broken, Failure):
        return found
    lines = [line if isinstance(line, str) else "" for line in text_files.JSON[kind]]
    text = lines[0].strip() if lines[0].strip()[-1:] in ("}", "]") else reading.ends.join(lines)
    text = text_files.text_file((text,), reading.charset.removesuffix("-bom"), "").decode(charset_of(reading) or "utf-8", "replace")
    if len(found.rows) < len(broken):  # an array, of which Spark loses elements
        return found
    return Table(
        found.types,
        tuple({**row, name: text} if row[name] is not None and bad is None else row for row, bad in zip(found.rows, broken, strict=True)),
    )


def refused(code: str) -> Callable[[Ask, Reading, str], Outcome]:
    return lambda ask, reading, kind: Failure(code)


def unicode(value: Any) -> Any:
    """A text with the replacement character for each byte that is none."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else value


def _any_charset(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(replace(with_options(reading, "encoding"), charset="utf-8"), kind)


def _every_name_of_a_charset(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(with_setting(reading, "spark.sql.legacy.javaCharsets", "true"), kind)


def with_setting(reading: Reading, key: str, value: str) -> Reading:
    return replace(reading, settings=tuple(sorted({**dict(reading.settings), key: value}.items())))


def _line_end_found(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(with_options(reading, lineSep="\n" if reading.ends == "\n" else reading.ends), kind)


def _only_the_corrupt_column(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    if isinstance(found, Failure) and "QUERY_ONLY_CORRUPT_RECORD_COLUMN" in found.text:
        found = ask(replace(reading, schema=f"{corrupt_name(reading)} STRING, `no such column` STRING"), kind)
        return found if isinstance(found, Failure) else found.without("no such column")
    return found


def _by_name(ask: Ask, reading: Reading, kind: str) -> Outcome:
    header = ask(replace(with_options(reading, "mode", inferSchema="false"), schema=None), kind)
    wanted, plain = columns_of(reading.schema or ""), ask(reading, kind)
    if isinstance(header, Failure) or isinstance(plain, Failure):
        return plain
    others = {name: what for name, what in wanted.items() if name == corrupt_name(reading) or name.startswith("surplus")}
    there = {name: wanted.get(name, "STRING") for name in header.types if name not in others}
    found = ask(replace(reading, schema=ddl({**there, **others})), kind)
    return found if isinstance(found, Failure) else Table(plain.types, tuple({n: row.get(n) for n in plain.types} for row in found.rows))


def _one_by_one(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(with_setting(reading, "spark.sql.legacy.useLegacyXMLParser", "true"), kind)


def _broken_ones_have_no_values(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    if isinstance(found, Failure):
        return found
    broken = broken_texts(ask, replace(reading, schema=reading.schema or declared(found.types)), kind)
    if isinstance(broken, Failure):
        return found
    name = corrupt_name(reading)
    rows = [
        row if text is None else {column: row[column] if column == name else None for column in row}
        for row, text in zip(found.rows, broken, strict=True)
    ]
    return Table(found.types, tuple(rows))


def xml_lines(reading: Reading, kind: str) -> list[bytes]:
    """The lines of an XML file; none of UTF-16, which Spark is asked for in UTF-8."""
    if reading.charset.startswith(("utf-16", "utf-32")):
        return []
    plain = reading.charset.removesuffix("-bom")
    return [line if isinstance(line, bytes) else line.encode(plain, "replace") for line in text_files.XML[kind]]


def is_foreign(reading: Reading, line: bytes) -> bool:
    """Whether some bytes are not of the encoding that the reader takes."""
    return "\ufffd" in line.decode(reading.get("encoding") or reading.get("charset") or "utf-8", "replace")


def _foreign_bytes_break_their_record(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """Of the other records what Spark's older parser reads, which shows such bytes by a replacement character."""
    found = _one_by_one(ask, with_options(reading, "mode"), kind)
    if isinstance(found, Failure):
        return found
    records = [line for line in xml_lines(reading, kind) if line.startswith(f"<{reading.get('rowTag')}>".encode())]
    broken = [is_foreign(reading, line) for line in records]
    if reading.get("mode") == "FAILFAST" and any(broken):
        return Failure("FAILED_READ_FILE")
    if reading.schema is None:  # a broken record says nothing of columns
        good = b"".join(line for line, foreign in zip(records, broken, strict=True) if not foreign).decode("utf-8")
        found = found.of(name for name in found.types if name == corrupt_name(reading) or f"<{name}>" in good)
    rows = []
    for row, line, foreign in zip(found.rows, records, broken, strict=True):
        text = line.decode("utf-8", "replace")
        if not foreign:
            rows.append(row)
        elif reading.get("mode") != "DROPMALFORMED":
            rows.append({name: text if name == corrupt_name(reading) else None for name in found.types})
    return Table(found.types, tuple(rows))


def _text_of_the_record(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """The text is that which Spark's older parser gives, which reads record by record."""
    found, texts, name = ask(reading, kind), _one_by_one(ask, reading, kind), corrupt_name(reading)
    if isinstance(found, Failure) or isinstance(texts, Failure) or not any(row[name] for row in found.rows):
        return found
    rows = zip(found.rows, texts.rows, strict=True)
    return Table(found.types, tuple({**row, name: text[name]} if row[name] is not None else row for row, text in rows))


def _misfits_are_alone(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """A struct has what Spark gives it where the values that do not fit are empty; an array only beside a rescued column."""
    found, fits = ask(reading, kind), ask(reading, "empty-nested")
    if isinstance(found, Failure) or isinstance(fits, Failure) or len(found.rows) < len(fits.rows):
        return found
    parted = [name for name, what in found.types.items() if what.startswith(("struct", "array")[: 1 + reading.rescues])]
    rows = zip(found.rows, fits.rows, strict=True)
    return Table(found.types, tuple({**row, **{name: fit[name] for name in parted if row[name] is None}} for row, fit in rows))


def _misfits_may_come_first(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, name = ask(reading, "misfit-last"), corrupt_name(reading)
    if isinstance(found, Failure) or name not in found.types:
        return found
    texts = {str(one): str(other) for one, other in zip(text_files.XML["misfit-last"], text_files.XML[kind], strict=True)}
    return Table(found.types, tuple({**row, name: texts.get(row[name], row[name])} for row in found.rows))


def _rounded_ones_are_rescued(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, texts = ask(reading, kind), ask(all_texts(reading), kind)
    if isinstance(found, Failure) or isinstance(texts, Failure):
        return found
    scales = {name: int(t[:-1].split(",")[1]) for name, t in found.types.items() if t.startswith("decimal")}
    rows = []
    for row, text in zip(found.rows, texts.rows if len(texts.rows) == len(found.rows) else found.rows, strict=True):
        cut = [name for name, scale in scales.items() if row[name] is not None and digits_behind_point(text.get(name)) > scale]
        rows.append({**row, **dict.fromkeys(cut)})
    return Table(found.types, tuple(rows))


def digits_behind_point(text: str | None) -> int:
    with suppress(InvalidOperation):
        return -int(Decimal(text or "0").normalize().as_tuple().exponent)
    return 0


_BYTES = "spark.sql.parquet.binaryAsString"


def _nothing_is_cast(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """The wanted columns with the types that they have in the file, of which those of another type are left out afterwards."""
    inferring = _inferring(reading)
    own = ask(inferring, kind)
    if isinstance(own, Failure):
        return ask(reading, kind)
    types = {name: simple(what, reading) for name, what in columns_of(reading.schema or "").items()}
    found_as = {name if reading.rescues else name.lower(): what for name, what in own.types.items()}
    have = {name: found_as[name] for name in types if name in found_as}
    if _BYTES in dict(reading.settings):  # bytes are texts for this setting, and bytes where they are declared so
        have |= {name: "binary" for name, what in have.items() if what == "string" and types[name] == "binary"}
    found = ask(replace(inferring, options=reading.options, schema=declared(have or {"no such column": "string"})), kind)
    if isinstance(found, Failure):
        return found
    trees = {name: tree(what) for name, what in have.items()}
    rows = [{name: fitting(row.get(name), trees.get(name), tree(what)) for name, what in types.items()} for row in found.rows]
    return Table(types, tuple(rows))


def _inferring(reading: Reading) -> Reading:
    """The reading in which Spark finds the types of a file, whatever is in it. An ORC timestamp is a moment in every session."""
    plain = with_options(replace(reading, schema=None), datetimeRebaseMode="CORRECTED", int96RebaseMode="CORRECTED")
    timed = with_setting(plain, "spark.sql.timeType.enabled", "true")
    return with_setting(timed, "spark.sql.timestampType", "TIMESTAMP_LTZ") if reading.format == "orc" else timed


def simple(what: str, reading: Reading) -> str:
    """A type of DDL as Spark shows it."""
    plain = dict(reading.settings).get("spark.sql.timestampType", "TIMESTAMP_LTZ").lower()
    text = re.sub(r"\btimestamp\b(?!_)", plain, what.lower().replace(": ", ":").replace(", ", ","))
    return text.replace("timestamp_ltz", "timestamp")


def tree(what: str) -> Any:
    """A type as Spark shows it: a struct is a dict, an array a list, a map a pair, another one its name."""
    inner = what[what.find("<") + 1 : -1]
    if what.startswith("struct<"):
        return {name: tree(kind) for name, kind in columns_of(inner, ":").items()}
    if what.startswith("map<"):
        key, value = inner.split(",", 1)  # keys of these files are texts
        return tree(key), tree(value)
    return [tree(inner)] if what.startswith("array<") else what


def fitting(value: Any, have: Any, want: Any) -> Any:
    """What is left of a value where nothing is cast."""
    if value is None or have == want:
        return value
    if isinstance(have, dict) and isinstance(want, dict):
        return {name: fitting(value[name], have[name], kind) if name in have else None for name, kind in want.items()}
    if isinstance(have, list) and isinstance(want, list):
        return [fitting(item, have[0], want[0]) for item in value]
    if isinstance(have, tuple) and isinstance(want, tuple) and have[0] == want[0]:
        return [(key, fitting(item, have[1], want[1])) for key, item in value]
    return None


def _only_columns_with_values(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    return found if isinstance(found, Failure) else found.of(name for name, what in found.types.items() if what not in ("void", "struct<>"))


def _has_moments_of(reading: Reading, kind: str) -> bool:
    return bool((set(typed_files.TABLES[kind]) - {"id", "day"}) & set(columns_of(reading.schema or "")))


def _cannot_be_read(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    return Table(found.types, ()) if reading.ignores_damage and isinstance(found, Table) else Failure("FAILED_READ_FILE")


def _old_calendar(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(with_options(reading, datetimeRebaseMode="LEGACY", int96RebaseMode="LEGACY"), kind)


def _whole_microseconds(ask: Ask, reading: Reading, kind: str) -> Outcome:
    return ask(reading, "moments")


def _as_the_writer_meant(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """The same columns in a Parquet file, which says nothing of a calendar."""
    return ask(replace(with_options(reading, datetimeRebaseMode="CORRECTED"), format="parquet"), kind)


def _a_row_for_every_file(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """The row of another file with the content of this one."""
    found = ask(reading, "plain")
    if isinstance(found, Failure):
        return found
    return Table(found.types, tuple({**row, "path": row["path"].replace("plain", kind), "length": 0, "content": b""} for row in found.rows))


def _empty_objects_are_texts(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found = ask(reading, kind)
    names = []
    for line in text_files.JSON[kind][: 1 if reading.get("multiLine") else None]:
        with suppress(ValueError):
            value = json.loads(line)
            names += [name for name, item in value.items() if item == {}] if isinstance(value, dict) else []
    if isinstance(found, Failure) or not names:
        return found
    return ask(replace(reading, schema=ddl(dict.fromkeys([*found.types, *names], "STRING"))), kind)


def _broken_escapes_are_mistakes(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """What Spark makes of the same records with a mistake outside of a text, where the escape is broken."""
    written = dict(zip(text_files.JSON[kind.replace("escapes", "commas")], text_files.JSON[kind], strict=True))

    def new(value: Any) -> Any:
        for mistake, escape in written.items():
            value = value.replace(str(mistake), str(escape)) if isinstance(value, str) else value
        return value

    return each_value(ask(reading, kind.replace("escapes", "commas")), new)


def _allows(reading: Reading, kind: str) -> bool:
    """Whether the escape of a kind is none that is broken: without digits, any character may have a backslash where an option allows it."""
    return kind == "odd-escapes" and reading.get("allowBackslashEscapingAnyCharacter") == "true"


def _elements_that_fit_are_kept(ask: Ask, reading: Reading, kind: str) -> Outcome:
    found, nulls = ask(reading, kind), ask(reading, "null-elements")
    if isinstance(found, Failure) or isinstance(nulls, Failure):
        return found
    names = [name for name, what in found.types.items() if what in ("array<bigint>", "map<string,bigint>")]
    rows = zip(found.rows, nulls.rows, strict=True)
    return Table(found.types, tuple({**row, **{name: other[name] for name in names}} for row, other in rows))


def is_base64(text: str) -> bool:
    with suppress(ValueError):
        return bool(base64.b64decode(text, validate=True)) or True
    return False


def _other_texts_are_no_bytes(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """Where a text is not base64, what Spark makes of the record with the column as DATE, which the text does not fit either.

    What is broken with the column as STRING is broken (FF-1, FF-41): a character that a text must not have is none that is not base64.
    """
    if "s BINARY" not in (reading.schema or ""):
        return ask(reading, kind)
    name, mode = corrupt_name(reading), reading.get("mode")
    schema = reading.schema if name in columns_of(reading.schema) else f"{reading.schema}, `{name}` STRING"
    plain = replace(with_options(reading, "mode"), schema=schema)
    tables = [ask(replace(plain, schema=schema.replace("s BINARY", what)), kind) for what in ("s BINARY", "s DATE", "s STRING")]
    if any(isinstance(one, Failure) for one in tables):
        return ask(reading, kind)
    found, others, texts = tables
    if len(found.rows) < len(texts.rows):  # an array, of which Spark loses the elements behind such a text
        found = others
    rows = [
        {**text, "s": None} if text["s"] is None else row if not isinstance(text["s"], str) or is_base64(text["s"]) else other
        for row, other, text in zip(found.rows, others.rows, texts.rows, strict=True)
    ]
    if mode == "FAILFAST" and any(row[name] is not None for row in rows):
        return Failure("FAILED_READ_FILE")
    kept = Table(tables[0].types, tuple(row for row in rows if mode != "DROPMALFORMED" or row[name] is None))
    return kept if name in columns_of(reading.schema) else kept.without(name)


_NEGATIVE_SCALES = "spark.sql.legacy.allowNegativeScaleOfDecimal"


def _decimals_are_written_out(ask: Ask, reading: Reading, kind: str) -> Outcome:
    """As Spark infers where a scale may be negative; then the scale is made 0. NaN and infinities are no DECIMAL."""
    if kind in ("not-numbers", "huge"):  # what no DECIMAL holds is DOUBLE, and these have no other fractions
        return ask(with_options(reading, "prefersDecimal"), kind)
    found = ask(with_setting(reading, _NEGATIVE_SCALES, "true"), kind)
    if isinstance(found, Failure) or reading.schema is not None:
        return found
    types = {name: re.sub(r"decimal\((\d+),-(\d+)\)", _without_negative_scale, what) for name, what in found.types.items()}
    return found if types == found.types else ask(replace(reading, schema=declared(types)), kind)


def _without_negative_scale(found: re.Match[str]) -> str:
    digits = int(found[1]) + int(found[2])
    return f"decimal({digits},0)" if digits <= 38 else "double"


_OPTIONS = "https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/options"
_SCHEMA = "https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/schema"
_XML = "https://docs.databricks.com/aws/en/query/formats/xml"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-35",
        "with a rescued column a value of another type does not break its record",
        _SCHEMA,
        lambda r, kind: r.rescues and r.get("mode") in ("DROPMALFORMED", "FAILFAST") and (r.schema is not None or r.format == "csv"),
        _only_broken_records_count,
        ("csv", "wrong-types", "rescue-drop"),
    ),
    Rule(
        "FS-36",
        "with a rescued column only the text of records that are none is in the column for broken records",
        _SCHEMA,
        lambda r, kind: r.rescues and r.schema is not None and corrupt_name(r) in columns_of(r.schema),
        _misfits_are_rescued_only,
        ("json", "wrong-types", "rescue-and-corrupt-column"),
    ),
    Rule(
        "FF-2",
        "the end of lines is found in every charset",
        _OPTIONS,
        lambda r, kind: (
            r.format == "json"
            and (r.charset in ("ascii", "latin-1", "cp1252") or r.get("encoding") == "latin1")
            and bool(r.get("encoding") or r.get("charset"))
            and not r.get("lineSep")
            and not r.get("multiLine")
        ),
        _line_end_found,
        ("json", "plain", "latin-1"),
    ),
    Rule(
        "FF-1",
        "lines are found in UTF-16 and UTF-32 as in UTF-8",
        _OPTIONS,
        lambda r, kind: r.format in ("csv", "json", "xml") and r.charset.startswith(("utf-16", "utf-32")) and bool(r.get("encoding")),
        _any_charset,
        ("csv", "plain", "utf-16"),
    ),
    Rule(
        "FF-1",
        "a charset may have any name that Java knows",
        _OPTIONS,
        lambda r, kind: r.format in ("csv", "json") and (r.get("encoding") or r.get("charset")).lower() in ("latin1", "windows-1252"),
        _every_name_of_a_charset,
        ("csv", "plain", "windows-1252"),
    ),
    Rule(
        "PA-1",
        "the column for broken records may be the only one",
        _SCHEMA,
        lambda r, kind: r.schema is None and "cloudFiles.schemaHints" in dict(r.loader),
        _only_the_corrupt_column,
        ("json inferred", "leading-zeros", "inferred,corrupt-column"),
    ),
    Rule(
        "FS-2",
        "a file without a record has nothing to infer from",
        "https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/faq",
        lambda r, kind: r.schema is None and r.format in ("json", "csv", "xml"),
        _nothing_to_infer,
        ("json inferred", "leading-zeros", "inferred,drop"),
    ),
    Rule(
        "FS-36",
        "inference adds no column for broken records",
        _SCHEMA,
        lambda r, kind: r.schema is None and r.format in ("json", "csv", "xml") and "cloudFiles.schemaHints" not in dict(r.loader),
        _no_corrupt_column,
        ("json inferred", "truncated", "inferred"),
    ),
    Rule(
        "FS-13",
        "a hinted column is there although no file has it",
        _SCHEMA,
        lambda r, kind: r.schema is None and "cloudFiles.schemaHints" in dict(r.loader),
        _hinted_corrupt_column,
        ("json inferred", "plain", "inferred,corrupt-column"),
    ),
    Rule(
        "FS-4",
        "columns are texts unless types are asked for",
        _SCHEMA,
        lambda r, kind: r.format == "json" and r.schema is None and "cloudFiles.inferColumnTypes" not in dict(r.loader),
        _texts,
        ("json inferred", "plain", "texts"),
    ),
    Rule(
        "FS-4",
        "an object without fields is a text, too",
        _SCHEMA,
        lambda r, kind: r.format == "json" and r.schema is None and "cloudFiles.inferColumnTypes" not in dict(r.loader),
        _empty_objects_are_texts,
        ("json inferred", "empty-object", "texts"),
    ),
    Rule(
        "FF-41",
        "a text with a broken escape breaks its record",
        "https://datatracker.ietf.org/doc/html/rfc8259#section-7",
        lambda r, kind: r.format == "json" and kind in ("odd-escapes", "half-escapes") and not _allows(r, kind),
        _broken_escapes_are_mistakes,
        ("json", "half-escapes", ""),
    ),
    Rule(
        "FF-39",
        "with a rescued column an array or map keeps the elements that fit",
        _SCHEMA,
        lambda r, kind: r.format == "json" and kind == "wrong-elements" and r.rescues,
        _elements_that_fit_are_kept,
        ("json", "wrong-elements", "rescue"),
    ),
    Rule(
        "FF-47",
        "a text that is not base64 does not fit BINARY, like any other value",
        "https://docs.databricks.com/aws/en/query/formats/json",
        lambda r, kind: r.format == "json" and "s BINARY" in (r.schema or ""),
        _other_texts_are_no_bytes,
        ("json", "plain", "bytes"),
    ),
    Rule(
        "FF-48",
        "with prefersDecimal a number with an exponent has the digits that it has without one",
        _OPTIONS,
        lambda r, kind: r.format == "json" and r.schema is None and r.get("prefersDecimal") == "true",
        _decimals_are_written_out,
        ("json inferred", "decimals", "inferred,prefersDecimal"),
    ),
    Rule(
        "FS-31",
        "a number that would be rounded is rescued",
        _SCHEMA,
        lambda r, kind: r.rescues and r.format in ("json", "csv") and "DECIMAL(" in (r.schema or ""),
        _rounded_ones_are_rescued,
        ("json", "decimals", "rescue"),
    ),
    Rule(
        "FF-12",
        "with a rescued column CSV columns belong to the declared ones by name",
        _OPTIONS,
        lambda r, kind: r.rescues and r.format == "csv" and r.schema is not None and r.get("header") == "true",
        _by_name,
        ("csv", "decimals", "rescue"),
    ),
    Rule(
        "FF-20",
        "a column of another type is not cast",
        _SCHEMA,
        lambda r, kind: r.format in ("parquet", "orc", "avro") and r.schema is not None,
        _nothing_is_cast,
        ("parquet", "integers", ""),
    ),
    Rule(
        "FF-24",
        "files may be of the old calendar unless said otherwise",
        _OPTIONS,
        lambda r, kind: r.format in ("parquet", "avro") and not r.get("datetimeRebaseMode") and "Rebase" not in str(r.settings),
        _old_calendar,
        ("parquet", "old-days", "inferred"),
    ),
    Rule(
        "PA-3",
        "bytes that are not of the charset are shown by the replacement character",
        _OPTIONS,
        lambda r, kind: (
            (r.format in ("json", "xml") and (kind == "bad-bytes" or "undeclared-latin-1" in r.labels))
            or (r.format == "avro" and kind == "bad-text")
        ),
        _texts_are_unicode,
        ("json", "bad-bytes", "corrupt-column"),
    ),
    Rule(
        "PA-2",
        "a moment in nanoseconds that is a whole microsecond is read",
        _OPTIONS,
        lambda r, kind: r.format == "parquet" and kind == "moments-ns",
        _whole_microseconds,
        ("parquet", "moments-ns", "inferred"),
    ),
    Rule(
        "FF-18",
        "an element that is not well-formed has no values",
        _XML,
        lambda r, kind: r.format == "xml" and text_files.xml_is_broken(kind) and r.get("mode") in ("", "PERMISSIVE"),
        _broken_ones_have_no_values,
        ("xml", "bare-ampersand", ""),
    ),
    Rule(
        "FF-33",
        "an element with bytes that are not of its encoding is broken",
        _OPTIONS,
        lambda r, kind: r.format == "xml" and any(is_foreign(r, line) for line in xml_lines(r, kind)),
        _foreign_bytes_break_their_record,
        ("xml", "bad-bytes", ""),
    ),
    Rule(
        "PA-9",
        "the text of a broken record of XML is that of the record, not of the file",
        "docs/decisions/0079-records-of-xml.md",
        lambda r, kind: r.format == "xml" and kind != "garbage" and r.schema is not None and corrupt_name(r) in columns_of(r.schema),
        _text_of_the_record,
        ("xml", "wrong-types", "corrupt-column"),
    ),
    Rule(
        "FF-19",
        "inside a struct, too, a value that does not fit nulls its own field only",
        _XML,
        lambda r, kind: r.format == "xml" and kind == "wrong-nested" and r.schema is not None,
        _misfits_are_alone,
        ("xml", "wrong-nested", ""),
    ),
    Rule(
        "FF-19",
        "a value that does not fit takes none of those behind it away",
        _XML,
        lambda r, kind: r.format == "xml" and kind == "misfit-first" and r.schema is not None,
        _misfits_may_come_first,
        ("xml", "misfit-first", ""),
    ),
    Rule(
        "FF-1",
        "the option encoding counts for XML, too",
        _OPTIONS,
        lambda r, kind: (
            r.format == "xml"
            and not (r.get("encoding") or r.get("charset") or "UTF-8").startswith("UTF")
            and not b"".join(xml_lines(r, kind)).isascii()
        ),
        _one_by_one,
        ("xml", "words", "latin-1"),
    ),
    Rule(
        "FS-33",
        "with a rescued column another spelling of a name is rescued",
        _OPTIONS,
        lambda r, kind: r.format == "xml" and kind == "spelling" and r.rescues and r.schema is not None,
        lambda ask, reading, kind: each_value(ask(reading, kind), lambda value: None),
        ("xml", "spelling", "rescue"),
    ),
    Rule(
        "FF-46",
        "a comment does not part a text",
        "https://www.w3.org/TR/xml/#sec-comments",
        lambda r, kind: r.format == "xml" and kind == "comments",
        _one_by_one,
        ("xml", "comments", "with-attributes"),
    ),
    Rule(
        "FF-18",
        "an element that is not well-formed breaks its own record only",
        _XML,
        lambda r, kind: r.format == "xml" and text_files.xml_is_broken(kind),
        _one_by_one,
        ("xml", "unclosed", ""),
    ),
    Rule(
        "FF-26",
        "a moment before 1677 in an ORC file cannot be read",
        "pyarrow, by which ORC files are read, counts nanoseconds in 64 bits",
        lambda r, kind: r.format == "orc" and kind.startswith("old-") and kind != "old-days" and (r.rescues or _has_moments_of(r, kind)),
        _cannot_be_read,
        ("orc", "old-moments", ""),
    ),
    Rule(
        "FF-26",
        "days before 1582 are those that the writer of the ORC file meant",
        "https://orc.apache.org/specification/ORCv1/",
        lambda r, kind: r.format == "orc" and kind == "old-days",
        _as_the_writer_meant,
        ("orc", "old-days", ""),
    ),
    Rule(
        "FS-2",
        "a file without a record has nothing to infer from, whatever avroSchema says",
        "https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/faq",
        lambda r, kind: r.format == "avro" and kind == "without-bytes" and r.schema is None,
        refused("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE"),
        ("avro", "without-bytes", "inferred,avroSchema"),
    ),
    Rule(
        "FF-56",
        "a type that has no values is no column",
        "https://docs.databricks.com/aws/en/sql/language-manual/data-types/null-type",
        lambda r, kind: r.format == "avro" and r.schema is None and kind in ("always-null", "empty-record"),
        _only_columns_with_values,
        ("avro", "always-null", "inferred"),
    ),
    Rule(
        "FF-57",
        "a time of day in Avro is its number",
        "https://docs.databricks.com/aws/en/query/formats/avro",
        lambda r, kind: r.format == "avro" and kind == "times-of-day",
        lambda ask, reading, kind: ask(reading, "times-as-numbers"),
        ("avro", "times-of-day", "inferred"),
    ),
    Rule(
        "FF-58",
        "a record that contains itself is refused, whichever of its fields are columns",
        "https://spark.apache.org/docs/latest/sql-data-sources-avro.html",
        lambda r, kind: r.format == "avro" and kind == "contains-itself" and not r.get("avroSchema"),
        refused("NOT_SUPPORTED_YET"),
        ("avro", "contains-itself", ""),
    ),
    Rule(
        "FF-28",
        "a file without bytes is a file",
        "https://docs.databricks.com/aws/en/query/formats/binary",
        lambda r, kind: r.format == "binaryFile" and kind == "without-bytes",
        _a_row_for_every_file,
        ("binaryFile", "without-bytes", ""),
    ),
    Rule(
        "FF-5",
        "texts of another language are refused",
        _OPTIONS,
        lambda r, kind: r.get("locale", "en-US") != "en-US",
        refused("NOT_SUPPORTED_YET"),
        ("csv", "plain", "locale"),
    ),
    Rule(
        "PA-4",
        "a way back to the separator is not sought over the ends of lines",
        "the mistake would be found at the end of the file",
        lambda r, kind: r.get("unescapedQuoteHandling") == "BACK_TO_DELIMITER" and bool(r.get("multiLine")),
        refused("CF_INCONSISTENT_OPTIONS"),
        ("csv", "plain", "back-to-delimiter,multiLine"),
    ),
    Rule(
        "FF-31",
        "UTF-16 and UTF-32 are found by the first bytes of the file",
        _OPTIONS,
        lambda r, kind: r.format in ("json", "xml") and "undeclared-utf-16" in r.labels,
        _any_charset,
        ("json", "plain", "undeclared-utf-16"),
    ),
    Rule(
        "FF-33",
        "a CSV file in UTF-16 is refused where no encoding is given",
        "docs/decisions/0063-encodings.md",
        lambda r, kind: r.format == "csv" and "undeclared-utf-16" in r.labels,
        refused("FAILED_READ_FILE"),
        ("csv", "plain", "undeclared-utf-16"),
    ),
    Rule(
        "FF-35",
        "a key that comes twice is inferred, and the last value counts",
        "https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/faq",
        lambda r, kind: r.format == "json" and kind == "repeated-key" and r.schema is None,
        _last_of_a_key,
        ("json inferred", "repeated-key", "inferred"),
    ),
    Rule(
        "FF-37",
        "a time of day is no moment",
        "https://docs.databricks.com/aws/en/sql/language-manual/data-types/timestamp-type",
        lambda r, kind: r.format in ("json", "csv") and kind == "time-of-day",
        as_if("no-time-of-day"),
        ("json", "time-of-day", ""),
    ),
    Rule(
        "PA-5",
        "the text of a value is that of the file",
        "docs/decisions/0010-open-points.md",
        lambda r, kind: r.format == "json" and bool(r.get("encoding") or r.get("charset")),
        _source_texts,
        ("json", "one-object", "multiLine,string-columns,utf-8"),
    ),
    Rule(
        "PA-6",
        "the text of a broken record of a document is that of the record, not of the file",
        "docs/decisions/0062-json-values.md",
        lambda r, kind: (
            r.format == "json" and bool(r.get("multiLine")) and r.schema is not None and corrupt_name(r) in columns_of(r.schema)
        ),
        _text_of_the_first_value,
        ("json", "days", "multiLine,corrupt-column,other-types,timestampFormat"),
    ),
    Rule(
        "PA-3",
        "the text of a broken record is of the same charset as its values",
        _OPTIONS,
        lambda r, kind: r.format == "json" and charset_of(r) != "" and not charset_of(r).startswith("UTF-"),
        _broken_texts_are_decoded,
        ("json", "words", "bytes,corrupt-column,utf-8-as-latin-1"),
    ),
    Rule(
        "PA-7",
        "a byte-order mark is no part of a text",
        _OPTIONS,
        lambda r, kind: bool((r.get("multiLine") and r.format == "json") or r.format == "text") and r.charset.endswith("-bom"),
        _no_mark,
        ("text", "plain", "wholeText,bom"),
    ),
    Rule(
        "FF-1",
        "encoding names the charset of text files",
        _OPTIONS,
        lambda r, kind: r.format == "text" and bool(r.get("encoding")),
        _decoded,
        ("text", "words", "latin-1"),
    ),
    Rule(
        "FF-11",
        "a header is assumed where columns are inferred",
        _OPTIONS,
        lambda r, kind: r.format == "csv" and r.schema is None and not r.get("header"),
        _header_assumed,
        ("csv inferred", "plain", "inferred,header-unset"),
    ),
)


def expected(laboratory: Laboratory, reading: Reading, kind: str, rules: Sequence[Rule] = RULES) -> Outcome:
    """What Auto Loader has to return, without its rescued column."""
    ask: Ask = laboratory.spark_reads
    for rule in reversed(rules):
        if rule.applies(reading, kind):
            ask = _behind(rule, ask)
    return ask(reading, kind)


def _behind(rule: Rule, ask: Ask) -> Ask:
    return lambda reading, kind: rule.instead(ask, reading, kind)


def returned(laboratory: Laboratory, reading: Reading, kind: str) -> Outcome:
    """What Auto Loader returns, without its rescued column."""
    found = laboratory.loader_reads(reading, kind)
    if isinstance(found, Failure) or not reading.rescues:
        return found
    return found.without(reading.get("rescuedDataColumn", "_rescued_data"))
