"""Options, hints and discovery of Auto Loader without Spark (AL-1 to AL-11)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from autoloading import schema_of
from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery.files import LocalFiles, files_for
from lakelet.autoloader.discovery.listing import Filters, list_files
from lakelet.autoloader.formats.json.inferred_types import Array, Struct, to_spark
from lakelet.autoloader.formats.text_blocks import splittable
from lakelet.autoloader.micro_batches import pack
from lakelet.autoloader.schema_hints import apply_hints, parse_hints
from lakelet.autoloader.source_options import AutoLoaderOptions, parse_options
from lakelet.autoloader.source_spec import FilePart
from lakelet.base.errors import LakeletError, Location


def options(**given: str) -> AutoLoaderOptions:
    keys = {("cloudFiles." + k if k[0] != "_" else k[1:]): v for k, v in {"format": "json", **given}.items()}
    return parse_options(SourceSpec("/in", keys, where=Location("p.py", 3)), {})


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({"foo": "1"}, "CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudfiles.foo"),
        ({"readerCaseSensitive": "false"}, "CF_UNKNOWN_OPTION_KEYS_ERROR", "readerCaseSensitive"),
        ({"pathGlobFilter": "*.json"}, "CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudfiles.pathglobfilter"),
        ({"inferColumTypes": "true"}, "CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudFiles.inferColumnTypes"),
        ({"format": "jsn"}, "CF_INVALID_OPTION_VALUE", "json"),
        ({"format": ""}, "CF_INCORRECT_STREAM_USAGE", "cloudFiles.format"),
        ({"schemaEvolutionMode": "foo"}, "CF_INVALID_SCHEMA_EVOLUTION_MODE", "failOnNewColumns"),
        ({"maxFilesPerTrigger": "0"}, "CF_INVALID_OPTION_VALUE", "maxFilesPerTrigger"),
        ({"maxBytesPerTrigger": "many"}, "CF_INVALID_OPTION_VALUE", "maxBytesPerTrigger"),
        ({"inferColumnTypes": "yes"}, "CF_INVALID_OPTION_VALUE", "true or false"),
        ({"cleanSource": "MOVE"}, "CF_INCONSISTENT_OPTIONS", "moveDestination"),
        ({"_encoding": "klingon"}, "CF_INVALID_OPTION_VALUE", "UTF-16LE"),
        ({"_timestampFormat": "EEE yyyy"}, "CF_INVALID_OPTION_VALUE", "EEE"),
        ({"_encoding": "UTF-8", "_charset": "UTF-16"}, "CF_INCONSISTENT_OPTIONS", "charset"),
        ({"schemaEvolutionMode": "addNewColumnsWithTypeWidening", "_prefersDecimal": "false"}, "CF_INCONSISTENT_OPTIONS", "prefersDecimal"),
        ({"_mode": "FAST"}, "CF_INVALID_OPTION_VALUE", "FAILFAST"),
        ({"format": "csv", "_samplingRatio": "half"}, "CF_INVALID_OPTION_VALUE", "samplingRatio must be a number"),
        ({"_modifiedAfter": "soon"}, "CF_INVALID_OPTION_VALUE", "modifiedAfter"),
        ({"useManagedFileEvents": "true", "useNotifications": "true"}, "CF_INCONSISTENT_OPTIONS", "useNotifications"),
    ],
)
def test_wrong_options_are_refused_with_a_code_and_the_place(given: dict[str, str], code: str, text: str) -> None:
    with pytest.raises(LakeletError) as caught:
        options(**given)
    assert caught.value.code == code
    assert text in str(caught.value)
    assert "p.py, line 3" in str(caught.value)


@pytest.mark.parametrize("format", ["json", "csv", "xml"])
def test_two_names_of_one_option_have_one_value(format: str) -> None:
    def read(**given: str) -> dict[str, object]:
        spec = SourceSpec("/in", {"cloudFiles.format": format, "rowTag": "r", **given}, where=Location("p.py", 3))
        return dict(parse_options(spec, {}).reader.format_options)

    assert read(charset="latin1")["encoding"] == read(encoding="ISO-8859-1", charset="latin1")["encoding"] == "iso8859-1"
    names = [("encoding", "UTF-8", "charset", "UTF-16")] + [("sep", ";", "delimiter", "|")] * (format == "csv")
    for one, value, other, another in names:
        with pytest.raises(
            LakeletError, match=re.escape(f"{one} is '{value}' and {other} is '{another}': they are two names of one option")
        ) as caught:
            read(**{one: value, other: another})
        assert (caught.value.code, caught.value.todo) == ("CF_INCONSISTENT_OPTIONS", "Leave one of them out.")


@pytest.mark.parametrize("format", ["json", "csv", "xml", "text"])
def test_what_is_no_charset_of_text_is_refused_by_every_format(format: str) -> None:
    for name in ("klingon", "base64"):
        with pytest.raises(LakeletError) as caught:
            parse_options(SourceSpec("/in", {"cloudFiles.format": format, "rowTag": "r", "encoding": name}), {})
        assert caught.value.what == f"option encoding must be the name of a charset such as UTF-16LE or ISO-8859-1, not {name!r}"


def test_a_line_separator_may_be_spelled_out_and_only_csv_has_a_longest_one() -> None:
    def read(format: str, text: str) -> object:
        return parse_options(SourceSpec("/in", {"cloudFiles.format": format, "lineSep": text}), {}).reader.format_options["linesep"]

    assert [read(format, "\\r\\n") for format in ("json", "csv", "text")] == ["\r\n"] * 3
    assert [read(format, "<r>") for format in ("json", "text")] == ["<r>"] * 2
    for format, text, must in (
        ("csv", "<r>", "must have 1 to 2 characters"),
        ("json", "", "must not be empty"),
        ("text", "", "must not be empty"),
    ):
        with pytest.raises(LakeletError, match=must):
            read(format, text)


def test_d08_unknown_keys_pass_without_validation_and_without_the_prefix() -> None:
    assert options(foo="1", validateOptions="false").reader.mode == "addNewColumns"
    parsed = options(_foo="1")
    assert parsed.reader.mode == "addNewColumns"
    assert parsed.notices == ("option foo has no effect: format json does not have it",)


def test_an_option_without_effect_is_named_as_it_was_written() -> None:
    parsed = parse_options(SourceSpec("/in", {"cloudFiles.format": "json", "skipChangeCommits": "true"}), {})
    assert parsed.notices == ("option skipChangeCommits has no effect: format json does not have it",)


@pytest.mark.parametrize(
    ("schema", "more", "lost"),
    [
        ("id INT", {}, True),
        ("id INT, _rescued_data INT", {}, True),
        ("id INT, _rescued_data STRING", {}, False),
        ("id INT", {"rescuedDataColumn": "more"}, False),
        ("id INT", {"cloudFiles.schemaEvolutionMode": "none"}, False),
    ],
)
def test_FS3_mode_rescue_without_a_rescued_column_says_that_values_are_left_out(schema: str, more: dict[str, str], lost: bool) -> None:
    given = {"cloudFiles.format": "json", "cloudFiles.schemaEvolutionMode": "rescue", **more}
    notices = parse_options(SourceSpec("/in", given, schema=schema_of(schema)), {}).notices
    assert ["are left out" in notice for notice in notices] == [True] * lost


def test_an_option_that_no_value_makes_work_is_to_be_left_out() -> None:
    with pytest.raises(LakeletError) as caught:
        parse_options(SourceSpec("/in", {"cloudFiles.format": "xml", "rowTag": "r", "rowValidationXSDPath": "a.xsd"}), {})
    assert (caught.value.what, caught.value.todo) == ("option rowValidationXSDPath is not supported yet", "Leave the option out.")


def test_d17_cloud_options_are_accepted_once_noted_and_no_credential_is_shown() -> None:
    spec = SourceSpec("/in", {"cloudFiles.format": "json", "cloudFiles.awsSecretKey": "s3cret", "cloudFiles.region": "x"})
    parsed = parse_options(spec, {})
    assert len(parsed.notices) == 2
    assert "s3cret" not in repr(spec) + repr(parsed)
    with pytest.raises(LakeletError) as caught:
        parse_options(SourceSpec("/in", {**spec.options, "cloudFiles.awsSecretKeyy": "s3cret"}), {})
    assert "s3cret" not in str(caught.value)


def test_values_are_typed_and_confs_are_read() -> None:
    parsed = options(
        maxBytesPerTrigger="10g", maxFilesPerTrigger="7", _pathGlobFilter="*.json", _timeZone="Asia/Tokyo", RescuedDataColumn="r"
    ).reader
    assert (parsed.max_bytes, parsed.max_files, parsed.name_glob, parsed.time_zone, parsed.rescued_column) == (
        10 << 30,
        7,
        "*.json",
        "Asia/Tokyo",
        "r",
    )
    confs = {"spark.databricks.sql.rescuedDataColumn.filePath.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}
    parsed = parse_options(SourceSpec("/in", {"cloudfiles.FORMAT": "JSON"}), confs).reader
    assert (parsed.file_path_in_rescued, parsed.time_zone, parsed.rescued_column) == (False, "Asia/Tokyo", "_rescued_data")
    assert options(schemaEvolutionMode="none").reader.rescued_column is None


def test_hints_are_parsed_with_nested_types_and_the_hinted_spelling_wins() -> None:
    hints = parse_hints("id INT, `a b` STRING, m map<string, array<int>>, o STRUCT<x: BIGINT, y: DECIMAL(10, 2)>, TS timestamp")
    assert {name: kind.simpleString() for name, kind in hints.items()} == {
        "id": "int",
        "a b": "string",
        "m": "map<string,array<int>>",
        "o": "struct<x:bigint,y:decimal(10,2)>",
        "TS": "timestamp",
    }
    inferred = to_spark(Struct({"Id": "bigint", "l": Array("string"), "ts": "string"}))
    assert apply_hints(inferred, hints).fieldNames() == ["id", "l", "TS", "a b", "m", "o"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("id", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        ("id INTT", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        ("id ARRAY<INT", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        ("id INT, ID STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("o.k INT, o STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
    ],
)
def test_bad_hints_are_refused(text: str, code: str) -> None:
    with pytest.raises(LakeletError) as caught:
        parse_hints(text)
    assert caught.value.code == code


def put(folder: Path, name: str, text: str = '{"id":1}\n', age: int = 0) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def test_d06_listing_is_recursive_and_leaves_out_hidden_segments(tmp_path: Path) -> None:
    for name in ("x.json", "_y.json", ".z.json", "_d/q.json", "w.json.tmp", "sub/n.json", "_k=1/p.json"):
        put(tmp_path, name)
    names = [os.path.relpath(p, tmp_path) for p in list_files(str(tmp_path), Filters()).table["path"].to_pylist()]
    assert sorted(names) == ["_k=1/p.json", "sub/n.json", "w.json.tmp", "x.json"]


def test_order_is_modification_time_then_path_and_filters_apply(tmp_path: Path) -> None:
    put(tmp_path, "b.json", age=5)
    put(tmp_path, "a.json", age=5)
    put(tmp_path, "c.csv", age=9)
    put(tmp_path, "old.json", age=1000)

    def names(**filters: object) -> list[str]:
        return [os.path.basename(p) for p in list_files(str(tmp_path), Filters(**filters)).table["path"].to_pylist()]  # type: ignore[arg-type]

    assert names() == ["old.json", "c.csv", "a.json", "b.json"]
    assert names(name_glob="*.json") == ["old.json", "a.json", "b.json"]
    assert names(name_glob="{a,c}.{json,csv}") == ["c.csv", "a.json"]
    assert names(name_glob="[^a].json") == ["b.json"]
    assert names(modified_after=(1_700_000_000 - 1000) * 1_000_000) == ["c.csv", "a.json", "b.json"]
    assert names(modified_before=(1_700_000_000 - 9) * 1_000_000) == ["old.json"]
    assert list_files(str(tmp_path / "absent"), Filters()).table.num_rows == 0


def test_paths_of_files_and_unreadable_schemes_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a.json")
    cases = [(str(path), "CF_PATH_IS_NOT_A_DIRECTORY"), ("", "CF_SOURCE_DIRECTORY_PATH_REQUIRED"), ("ftp://b/x", "CF_SOURCE_UNSUPPORTED")]
    for place, code in cases:
        with pytest.raises(LakeletError) as caught:
            AutoLoaderSource.open(SourceSpec(place, {"cloudFiles.format": "json"}), state=None)
        assert caught.value.code == code


def test_uris_are_encoded_like_hadoop_paths() -> None:
    assert LocalFiles().uri("/a/sp ace/ü%#?.json") == "file:/a/sp%20ace/ü%25%23%3F.json"
    assert files_for("file:///a/sp%20ace")[1] == files_for("file:/a/sp%20ace")[1] == "/a/sp ace"


def test_small_files_share_tasks_and_large_ones_are_split() -> None:
    small = [FilePart(f"/{n}", 1000, 0) for n in range(100)]
    assert len(pack(small, 2, splittable)) <= 4
    assert [p for task in pack(small, 2, splittable) for p in task] == small
    parts = [p for task in pack([FilePart("/big", 100 << 20, 0), FilePart("/z.gz", 100 << 20, 0)], 2, splittable) for p in task]
    assert [p.length for p in parts if p.path == "/z.gz"] == [None]
    big = [p for p in parts if p.path == "/big"]
    assert len(big) >= 3
    assert sum(p.length or 0 for p in big) == 100 << 20
    assert [p.start for p in big[1:]] == [p.start + (p.length or 0) for p in big[:-1]]
