"""Transforms of rows and columns: generated frames against plain Python, awkward names, types, empty frames."""

from __future__ import annotations

import json
import pickle
import random
import re
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lakelet.transforms import (
    TransformError,
    add_current_timestamp,
    add_partition_columns,
    add_source_file,
    add_watermark,
    alter_types,
    deduplicate,
    deduplicate_micro_batch,
    drop,
    drop_duplicates,
    drop_partition_columns,
    filter_rows,
    join,
    parse_json,
    rename,
    replace_in_names,
    replace_in_values,
    select,
    union,
    with_columns,
)
from lakelet.transforms.errors import CODES

FEW = settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SMALL = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(SMALL, SMALL, st.sampled_from([None, "", "x", "é"])), min_size=100, max_size=200)
AWKWARD = "`k.1` INT, `Seq``` INT, `a b` STRING"


def rows(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def ordered(values: Any) -> list[Any]:
    return sorted(values, key=repr)


def down(value: int | None) -> tuple[bool, int]:
    """Sort key of Spark's descending order, NULL last."""
    return (value is None, -(value or 0))


def up(value: Any) -> tuple[bool, Any]:
    """Sort key of Spark's ascending order, NULL first."""
    return (value is not None, value if value is not None else 0)


@pytest.mark.long
@FEW
@given(given_rows=ROWS)
def test_deduplicate_keeps_the_first_of_each_key_whatever_the_order_of_arrival(spark: Any, given_rows: list[Any]) -> None:
    best: dict[Any, Any] = {}
    for row in given_rows:
        if row[0] not in best or (down(row[1]), up(row[2])) < (down(best[row[0]][1]), up(best[row[0]][2])):
            best[row[0]] = row
    shuffled = given_rows[:]
    random.Random(1).shuffle(shuffled)
    step = deduplicate("K.1", order_by=F.desc("`seq```"))
    both = [spark.createDataFrame(found, AWKWARD).repartition(n) for n, found in ((1, given_rows), (4, shuffled))]
    assert [rows(frame.transform(step)) for frame in both] == [ordered(best.values())] * 2
    assert rows(both[0].transform(deduplicate_micro_batch("k.1", F.desc("`Seq```")))) == ordered(best.values())


@pytest.mark.slow
@FEW
@given(given_rows=ROWS)
def test_rows_and_columns_as_plain_python_does_it(spark: Any, given_rows: list[Any]) -> None:
    frame = spark.createDataFrame(given_rows, AWKWARD)
    assert rows(frame.transform(drop_duplicates())) == ordered(set(given_rows))
    assert len(rows(frame.transform(drop_duplicates("A B", "K.1")))) == len({(a, k) for k, _, a in given_rows})
    kept = filter_rows("`k.1` > 1")
    assert rows(frame.transform(kept)) == ordered(row for row in given_rows if row[0] is not None and row[0] > 1)
    with_null = filter_rows(F.col("`k.1`") > 1, keep_null=True)
    assert rows(frame.transform(with_null)) == ordered(row for row in given_rows if row[0] is None or row[0] > 1)
    swapped = frame.transform(rename({"k.1": "Seq`", "SEQ`": "k.1"})).transform(drop("A B"))
    assert swapped.columns == ["Seq`", "k.1"]
    assert rows(swapped) == ordered(row[:2] for row in given_rows)
    chosen = frame.transform(select("a b", "K.1")).transform(with_columns({"n": F.lit(1), "A B": "upper(`a b`)"}))
    assert chosen.columns == ["a b", "k.1", "n"]
    assert rows(chosen) == ordered((None if a is None else a.upper(), k, 1) for k, _, a in given_rows)
    changed = frame.transform(replace_in_values("a b", {"x": "é", "é": "$1\\"}))
    assert rows(changed.select("`a b`")) == ordered(
        (None if a is None else a.replace("x", "é").replace("é", "$1\\"),) for *_, a in given_rows
    )


@pytest.mark.slow
@FEW
@given(left=ROWS, right=st.lists(st.tuples(SMALL, st.integers(0, 9)), max_size=20))
def test_joins_and_unions_as_plain_python_does_it(spark: Any, left: list[Any], right: list[Any]) -> None:
    mine, other = spark.createDataFrame(left, AWKWARD), spark.createDataFrame(right, "`K.1` INT, `seq``` INT")
    matches = {key: [r for r in right if key is not None and r[0] == key] for key in {row[0] for row in left}}
    inner = [(*row, r[1]) for row in left for r in matches[row[0]]]
    lonely = [row for row in left if not matches[row[0]]]
    unmatched = [(r[0], None, None, r[1]) for r in right if r[0] is None or r[0] not in matches]
    expected = {
        "inner": inner,
        "left": inner + [(*row, None) for row in lonely],
        "right": inner + unmatched,
        "full": inner + [(*row, None) for row in lonely] + unmatched,
        "left_semi": [row for row in left if matches[row[0]]],
        "left_anti": lonely,
    }
    for how, found in expected.items():
        joined = mine.transform(join(other, "k.1", how=how, broadcast=how == "left"))
        assert joined.columns == ["k.1", "Seq`", "a b", "seq`_right"][: 3 if how.startswith("left_") else 4]
        assert rows(joined) == ordered(found)
    united = mine.transform(union(other, other.transform(drop("seq`")))).transform(drop("a b"))
    assert rows(united) == ordered([row[:2] for row in left] + right + [(r[0], None) for r in right])


def test_what_is_wrong_is_said_with_a_code_and_the_nearest_name(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS id, 'x' AS `user.name`, CAST(1 AS DOUBLE) AS d")
    doubled = frame.select("*", F.lit(2).alias("ID"))
    stamped = spark.sql("SELECT 'a' AS id")
    for step, on, code in (
        (select("user.nam"), frame, "TRANSFORM_UNKNOWN_COLUMN"),
        (drop("nothing"), frame, "TRANSFORM_UNKNOWN_COLUMN"),
        (drop("Id"), doubled, "TRANSFORM_AMBIGUOUS_COLUMN"),
        (rename({"id": "D"}), frame, "TRANSFORM_COLUMN_EXISTS"),
        (replace_in_names({"user.name": "ID"}), frame, "TRANSFORM_COLUMN_EXISTS"),
        (replace_in_values("id", {"a": "b"}), frame, "TRANSFORM_TYPE"),
        (union(stamped), frame, "TRANSFORM_TYPE"),
        (union(stamped.select(F.lit(1).alias("id")), fill_missing=False), frame, "TRANSFORM_UNKNOWN_COLUMN"),
        (add_watermark("id", "1 minute"), frame, "TRANSFORM_TYPE"),
        (add_partition_columns("d"), frame, "TRANSFORM_TYPE"),
        (add_source_file(), frame, "TRANSFORM_NO_METADATA"),
        (alter_types({"id": "ARRAY<INT>"}), frame, "TRANSFORM_TYPE"),
        (alter_types({"id": "INT"}, misfits="D"), frame, "TRANSFORM_COLUMN_EXISTS"),
        (parse_json("id", "a INT"), frame, "TRANSFORM_TYPE"),
        (join(frame, "id", suffix=""), frame, "TRANSFORM_COLUMN_EXISTS"),
    ):
        with pytest.raises(TransformError) as caught:
            on.transform(step)
        assert caught.value.code == code, step
        assert str(caught.value).startswith(f"[{code}] ")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.code, str(again)) == (code, str(caught.value))
    with pytest.raises(TransformError, match=r"Did you mean 'user\.name'\?"):
        frame.transform(select("user.nam"))
    assert frame.transform(drop("nothing", "ID", missing_ok=True)).columns == ["user.name", "d"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: select(),
        lambda: drop(""),
        lambda: rename({"a": ""}),
        lambda: with_columns({"a": "1", "A": "2"}),
        lambda: filter_rows(" "),
        lambda: replace_in_values("a", {"": "b"}),
        lambda: union(),
        lambda: join(None, "a", how="outer_space"),  # type: ignore[arg-type]
        lambda: deduplicate("a", order_by=[]),
        lambda: add_watermark("a", ""),
        lambda: add_source_file(name=None, path=None),
        lambda: add_partition_columns("a", ["week"]),
        lambda: drop_partition_columns(["day", "day"]),
        lambda: alter_types({}),
        lambda: parse_json("a"),
        lambda: parse_json("a", "b INT", samples="{}"),
        lambda: parse_json("a", samples=[]),
    ],
)
def test_a_wrong_argument_is_refused_where_it_is_given(make: Any) -> None:
    with pytest.raises(TransformError) as caught:
        make()
    assert caught.value.code in ("TRANSFORM_ARGUMENT", "TRANSFORM_COLUMN_EXISTS")
    assert set(CODES) >= {caught.value.code}


NUMBERS = st.one_of(
    st.none(),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(-(2**31) - 2, 2**31 + 2).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9).map(str),
    st.sampled_from(
        [
            "",
            " 7 ",
            "+7",
            "7.0",
            "7.10",
            "1e3",
            "1e400",
            "0x10",
            "nan",
            "Infinity",
            "٣",
            "7L",
            "NULL",
            "--7",
            "0.125",
            "9007199254740993",
            "1152921504606846976",
            str(2**63 - 1),
        ]
    ),
)
TYPES = {"i": "INT", "b": "BIGINT", "d": "DECIMAL(12, 2)", "f": "DOUBLE"}


def as_decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return None


@FEW
@given(texts=st.lists(NUMBERS, min_size=300, max_size=300))
def test_a_text_becomes_the_number_that_it_says_or_is_kept(spark: Any, texts: list[str | None]) -> None:
    frame = spark.createDataFrame([(t,) for t in texts], "t STRING").select("t", *(F.col("t").alias(name) for name in TYPES))
    for row in frame.transform(alter_types(TYPES)).collect():
        misfits = row._misfits or {}
        for name in TYPES:
            if row.t is None:
                assert row[name] is None
                assert name not in misfits
            elif row[name] is None:
                assert misfits[name] == row.t
            else:
                assert name not in misfits
                said = as_decimal(row.t)
                assert said is not None
                assert (str(row[name]) == str(float(said))) if name == "f" else (Decimal(row[name]) == said), (name, row)
        fits_int = (
            row.t is not None and row.t.isascii() and row.t.lstrip("+-").isdigit() and row.t.count("-") < 2 and abs(int(row.t)) < 2**31
        )
        assert not fits_int or row.i == int(row.t)


@FEW
@given(
    given_rows=st.lists(
        st.tuples(st.one_of(st.none(), st.floats(width=64)), st.integers(-(2**63), 2**63 - 1), st.decimals(-(10**10), 10**10, places=4)),
        min_size=200,
    )
)
def test_a_number_that_would_be_cut_off_is_kept(spark: Any, given_rows: list[Any]) -> None:
    """DOUBLE to INT, BIGINT to DOUBLE, DECIMAL to a narrower one."""
    frame = spark.createDataFrame(given_rows, "f DOUBLE, b BIGINT, d DECIMAL(16, 4)")
    step = alter_types({"f": "INT", "b": "DOUBLE", "d": "DECIMAL(9, 1)"})
    for before, after in zip(given_rows, frame.transform(step).collect(), strict=True):
        misfits = after._misfits or {}
        for name, old in zip("fbd", before, strict=True):
            assert (after[name] is None) == (old is None or name in misfits)
            assert after[name] is None or after[name] == old
        assert "b" in misfits or int(after.b) == before[1]
        assert ("b" in misfits) == (int(float(before[1])) != before[1])


CASTS: list[tuple[str, str, Any]] = [
    ("7L", "BOOLEAN", None), ("1L", "BOOLEAN", True), ("0L", "BOOLEAN", False), ("0.5D", "BOOLEAN", None), ("1.00BD", "BOOLEAN", True),
    ("'2026-03-01'", "DATE", date(2026, 3, 1)), ("' 2026-3-1 '", "DATE", date(2026, 3, 1)), ("'2026-03'", "DATE", date(2026, 3, 1)),
    ("'2026-03-01 08:30'", "DATE", date(2026, 3, 1)), ("'2026-03-01T23:30:00+05:00'", "DATE", date(2026, 3, 1)),
    ("'2026-03-01 oops'", "DATE", None), ("'2026-03-01Toops'", "DATE", None), ("'2026-03-01 25:00'", "DATE", None),
    ("'08:30'", "DATE", None), ("'08:30'", "TIMESTAMP", None), ("'T08:30:00Z'", "TIMESTAMP", None),
    ("TIMESTAMP '1970-01-02 00:00:00Z'", "BIGINT", 86_400), ("TIMESTAMP '1970-01-02 00:00:00Z'", "DECIMAL(9, 1)", Decimal("86400.0")),
    ("TIMESTAMP '1970-01-02 00:00:00.5Z'", "BIGINT", None), ("TIMESTAMP '1969-12-31 23:59:59.5Z'", "INT", None),
    ("TIMESTAMP '1970-01-02 00:00:00.25Z'", "DECIMAL(9, 1)", None), ("TIMESTAMP '2100-01-01 00:00:00Z'", "INT", None),
    ("TIMESTAMP '1970-01-02 00:00:00.5Z'", "DOUBLE", 86_400.5),
]  # fmt: skip


def test_no_part_of_a_value_is_lost_without_a_word(spark: Any) -> None:
    frame = spark.range(1).select(*(F.expr(value).alias(f"c{n}") for n, (value, _, _) in enumerate(CASTS)))
    row = frame.transform(alter_types({f"c{n}": wanted for n, (_, wanted, _) in enumerate(CASTS)})).first()
    for n, (value, wanted, expected) in enumerate(CASTS):
        assert (row[n], f"c{n}" in row._misfits) == (expected, expected is None), (value, wanted)


DAYS = st.dates(date(1000, 1, 1), date(9999, 12, 30))
TIMES = st.sampled_from(
    ["", " ", " 08:30", "T8:30:15", " 23:59:59.5", "T08:30:00Z", " oops", "Toops", "x", " 24:00", "-1", " 08:30 tomorrow"]
)
A_TIME = re.compile(r"([ T]\d?\d:\d\d(:\d\d(\.\d+)?)?Z?)?\s*")


@FEW
@given(texts=st.lists(st.one_of(st.builds("{}{}".format, DAYS, TIMES), TIMES.map(str.lstrip), st.none()), min_size=200, max_size=300))
def test_a_text_becomes_the_day_and_the_time_that_it_says_or_is_kept(spark: Any, texts: list[str | None]) -> None:
    frame = spark.createDataFrame([(t,) for t in texts], "day STRING").select("day", F.col("day").alias("at"), F.col("day").alias("text"))
    for row in frame.transform(alter_types({"day": "DATE", "at": "TIMESTAMP"})).withColumn("at", F.col("at").cast("string")).collect():
        text = row.text or ""
        fits = re.match(r"\d{4}-", text) and A_TIME.fullmatch(text, 10) and "24:00" not in text
        assert row.day == (date.fromisoformat(text[:10]) if fits else None), text
        assert (row.at is not None) == bool(fits), text
        assert row._misfits == (None if fits or row.text is None else {"day": text, "at": text}), text


def test_what_does_not_fit_fails_the_query_where_nothing_is_to_be_kept(spark: Any) -> None:
    frame = spark.createDataFrame([("7",), ("x7",)], "`n.m` STRING").transform(alter_types({"N.M": "INT"}, misfits=None))
    assert frame.schema.simpleString() == "struct<n.m:int>"
    assert frame.limit(1).collect()[0][0] == 7
    with pytest.raises(PySparkException, match=r"\[TRANSFORM_VALUE\] alter_types: column 'n.m' cannot be int: x7"):
        frame.collect()


SCALARS = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["", "x", 'q"}]', "é"]), st.booleans())
RECORDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(SCALARS, st.lists(st.integers(0, 9), max_size=2)), max_size=3)
TAILS = st.sampled_from(["", "", "", " ", "x", "}", "]}", ',{"a":1}', ',"z":1', "{}"])


@FEW
@given(cases=st.lists(st.tuples(RECORDS, TAILS, st.integers(0, 30)), min_size=200))
def test_a_json_text_is_parsed_or_kept(spark: Any, cases: list[Any]) -> None:
    """Whole texts, texts with something behind them, and broken off ones."""
    texts = [None, "", "null", "5", "[]", *(json.dumps(r) + tail if cut > 3 else (json.dumps(r) + tail)[:cut] for r, tail, cut in cases)]
    frame = spark.createDataFrame([(t,) for t in texts], "`the text` STRING")
    for row in frame.transform(parse_json("The Text", "a INT, b STRING, c ARRAY<INT>", into="p", corrupt="bad")).collect():
        text = row["the text"]
        try:
            said: Any = None if text is None else json.loads(text)
        except ValueError:
            assert row.bad == text
            continue
        if said is None:
            assert (row.p, row.bad) == (None, None)
        elif not isinstance(said, dict):
            assert row.bad == text
        else:
            a, c = said.get("a"), said.get("c")
            fits = (a is None or type(a) is int) and (c is None or isinstance(c, list))
            assert row.bad == (None if fits else text), text
            if fits:
                assert (row.p.a, row.p.c) == (a, c)
                assert not isinstance(said.get("b"), str | None) or row.p.b == said.get("b")


def test_names_are_mended_at_every_depth(spark: Any) -> None:
    frame = spark.sql("SELECT named_struct('a b', array(named_struct('c=d', 1))) AS `s;t`, map(named_struct('k 1', 1), 2) AS `m(1)`")
    mended = frame.transform(replace_in_names())
    assert mended.schema.simpleString() == "struct<s_t:struct<a_b:array<struct<c_d:int>>>,m_1_:map<struct<k_1:int>,int>>"
    assert mended.first().s_t.a_b[0].c_d == 1


def test_parts_of_dates_are_added_and_dropped(spark: Any) -> None:
    frame = spark.sql("SELECT named_struct('at', TIMESTAMP_NTZ '2026-12-31 23:30:00') AS e UNION ALL SELECT NULL")
    parts = ["date", "year", "quarter", "month", "day", "hour"]
    added = frame.transform(add_partition_columns("e.at", parts, prefix="p_"))
    assert [[str(v) for v in row[1:]] for row in added.collect()] == [["2026-12-31", "2026", "4", "12", "31", "23"], ["None"] * 6]
    assert added.transform(drop_partition_columns(parts, prefix="P_")).columns == ["e"]


MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(microsecond=0))
PARTS = {
    "date": datetime.date,
    "year": lambda at: at.year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "day": lambda at: at.day,
    "hour": lambda at: at.hour,
}


@FEW
@given(
    times=st.lists(st.one_of(st.none(), MOMENTS), min_size=100, max_size=150),
    parts=st.lists(st.sampled_from([*PARTS]), min_size=1, unique=True),
)
def test_parts_of_generated_times_are_those_of_the_calendar(spark: Any, times: list[Any], parts: list[str]) -> None:
    frame = spark.createDataFrame([(n, at) for n, at in enumerate(times)], "n INT, at TIMESTAMP_NTZ")
    added = frame.transform(add_partition_columns("AT", parts, prefix="p ")).transform(add_watermark("at", "1 hour"))
    assert added.columns == ["n", "at", *(f"p {part}" for part in parts)]
    assert rows(added) == ordered((n, at, *(None if at is None else PARTS[part](at) for part in parts)) for n, at in enumerate(times))
    assert rows(added.transform(drop_partition_columns(parts, prefix="P "))) == ordered(enumerate(times))


@FEW
@given(
    many_names=st.lists(
        st.lists(
            st.text("aB.`é =;", min_size=1, max_size=6), min_size=1, max_size=5, unique_by=lambda name: re.sub("[.;= ]", "_", name).lower()
        ),
        min_size=20,
        max_size=20,
    ),
    contents=st.lists(st.lists(st.text("xyé ", max_size=5), max_size=20), min_size=1, max_size=4),
)
def test_generated_names_are_mended_and_lines_know_their_file_and_time(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, many_names: list[list[str]], contents: list[list[str]]
) -> None:
    for names in many_names:  # no job each: what the values are is asked once
        frame = spark.range(1).select(*(F.lit(n).alias(name) for n, name in enumerate(names)))
        mended = frame.transform(replace_in_names({".": "_", "=": "_", ";": "_", " ": "_"}))
        assert mended.columns == [re.sub("[.;= ]", "_", name) for name in names]
    assert mended.first() == tuple(range(len(names)))

    folder = tmp_path_factory.mktemp("lines")
    for n, lines in enumerate(contents):
        (folder / f"part {n} é.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    before = datetime.now(timezone.utc)
    found = spark.read.text(str(folder)).transform(add_source_file()).transform(add_current_timestamp("seen")).collect()
    assert ordered((row.value, unquote(row._file_name)) for row in found) == ordered(
        (line, f"part {n} é.txt") for n, lines in enumerate(contents) for line in lines
    )
    assert {Path(unquote(urlparse(row._file_path).path)) for row in found} == {folder / unquote(row._file_name) for row in found}
    assert len({row.seen for row in found}) <= 1
    assert all(before <= row.seen.astimezone(timezone.utc) <= datetime.now(timezone.utc) for row in found)


def test_an_empty_frame_goes_through(spark: Any) -> None:
    frame = spark.createDataFrame([], AWKWARD)
    for step in (deduplicate("k.1", "SEQ`"), drop_duplicates(), union(frame), join(frame, "k.1"), alter_types({"a b": "INT"})):
        assert frame.transform(step).collect() == []
