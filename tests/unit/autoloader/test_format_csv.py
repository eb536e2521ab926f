"""CSV, on the reader itself (FF-11 to FF-17); numbered cases carry their ids."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from format_folder import INFER, Folder, picked, rescued
from pyspark.sql import types as t

from lakelet.autoloader.schema_growth import UnknownFieldException, grow
from lakelet.autoloader.source_spec import BAD_BYTES
from lakelet.base.errors import LakeletError


@pytest.fixture
def csv(tmp_path: Path) -> Callable[..., Folder]:
    made: list[Folder] = []

    def make(**files: str | bytes) -> Folder:
        folder = Folder(tmp_path / str(len(made)), "csv")
        made.append(folder)
        for name, content in files.items():
            folder.put(f"{name}.csv", content)
        return folder

    return make


def struct(text: str) -> t.StructType:
    kinds = {"int": t.IntegerType(), "string": t.StringType(), "double": t.DoubleType(), "date": t.DateType(), "long": t.LongType()}
    kinds |= {"timestamp": t.TimestampType(), "decimal": t.DecimalType(5, 2), "binary": t.BinaryType(), "boolean": t.BooleanType()}
    return t.StructType([t.StructField(name, kinds[kind]) for name, kind in (item.split() for item in text.split(","))])


def test_I07_I08_a_header_is_assumed_and_types_are_inferred_on_request(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id,amt,day,ok\n1,2.5,2024-01-02,true\n")
    assert folder.types(INFER) == {"id": "int", "amt": "double", "day": "date", "ok": "boolean", "_rescued_data": "string"}
    assert picked(folder.rows(INFER), "id", "amt", "day", "ok") == [(1, 2.5, datetime.date(2024, 1, 2), True)]
    assert set(folder.types().values()) == {"string"}
    assert picked(folder.rows(), "id", "amt", "day", "ok") == [("1", "2.5", "2024-01-02", "true")]


def test_I09_without_header_columns_are_numbered(csv: Callable[..., Folder]) -> None:
    folder = csv(a="1,x\n")
    assert folder.types({**INFER, "header": "false"}) == {"_c0": "int", "_c1": "string", "_rescued_data": "string"}
    assert picked(folder.rows({**INFER, "header": "false"}), "_c0", "_c1") == [(1, "x")]


def test_I10_headers_are_joined_and_each_file_is_read_by_its_own(csv: Callable[..., Folder]) -> None:
    folder = csv(a="a,b\n1,2\n", b="b,c\n3,4\n")
    assert list(folder.types(INFER).items()) == [("a", "int"), ("b", "int"), ("c", "int"), ("_rescued_data", "string")]
    assert picked(folder.rows(INFER), "a", "b", "c") == [(1, 2, None), (None, 3, 4)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1"], "int"),
        (["1", "3000000000"], "bigint"),
        (["12345678901234567890"], "decimal(20,0)"),
        (["1.5"], "double"),
        (["1e3"], "double"),
        (["NaN"], "double"),
        (["1", "2.5"], "double"),
        (["TRUE", "false"], "boolean"),
        (["2024-01-02"], "date"),
        (["2024-01-02T03:04:05Z"], "timestamp"),
        (["2024-01-02 03:04:05"], "timestamp"),
        (["2024-01-02", "2024-01-02 03:04:05"], "timestamp"),
        (["2024-02-30"], "string"),
        (["1", "x"], "string"),
        (["1", "true"], "string"),
        (["", ""], "string"),
        (["007"], "int"),
        (["2147483648", "-5"], "bigint"),
        (["0012345678"], "int"),
        ([" 1"], "double"),
        (["2024-01-02T25:00:00"], "string"),
    ],
)
def test_types_are_those_of_sparks_reader(csv: Callable[..., Folder], values: list[str], kind: str) -> None:
    folder = csv(a="k,v\n" + "".join(f"x,{value}\n" for value in values))
    assert folder.types(INFER)["v"] == kind
    if kind == "date":
        assert folder.types({**INFER, "preferDate": "false"})["v"] == "timestamp"


def test_a_header_without_rows_gives_text_columns_and_no_rows(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id,name\n", b=b"")
    assert folder.types(INFER) == {"id": "string", "name": "string", "_rescued_data": "string"}
    assert folder.rows(INFER) == []


def test_R01_R02_R03_a_text_that_does_not_fit_is_rescued_in_every_mode(csv: Callable[..., Folder]) -> None:
    folder = csv(a="item,price\nA,1795\nB,$100.00\n")
    schema = struct("item string,price double")
    for mode in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"):
        rows = folder.rows({"header": "true", "rescuedDataColumn": "_rescued_data", "mode": mode}, schema)
        assert picked(rows, "item", "price") == [("A", 1795.0), ("B", None)]
        assert [rescued(row) for row in rows if row["item"] == "B"] == [{"price": "$100.00"}]
    confs = {"spark.databricks.sql.rescuedDataColumn.filePath.enabled": "false"}
    rows = folder.rows({"header": "true", "rescuedDataColumn": "_rescued_data"}, schema, confs=confs)
    assert [row["_rescued_data"] for row in rows if row["item"] == "B"] == ['{"price":"$100.00"}']


def test_R10_surplus_values_are_rescued_and_short_rows_keep_what_they_have(csv: Callable[..., Folder]) -> None:
    folder = csv(z="a,b\n9,9\n", a="a,b\n1,2\n3\n4,5,6\n")
    rows = folder.rows(INFER, only="a.csv")
    assert picked(rows, "a", "b", "line") == [(1, 2, None), (3, None, -3), (4, 5, 4)]
    assert [rescued(row) for row in rows if row["a"] == 4] == [{"_c2": "6"}]
    assert picked(folder.rows({**INFER, "mode": "DROPMALFORMED"}), "a") == [1, 4, 9]
    with pytest.raises(LakeletError, match="MALFORMED_RECORD_IN_PARSING: 3") as failure:
        folder.rows({**INFER, "mode": "FAILFAST"})
    assert failure.value.code == "FAILED_READ_FILE"
    assert "line 3" in failure.value.what


def test_a_short_row_is_kept_in_the_corrupt_column_and_under_badRecordsPath(csv: Callable[..., Folder], tmp_path: Path) -> None:
    folder = csv(a="a,b\n1,2\n3\n")
    hints = {**INFER, "cloudFiles.schemaHints": "_corrupt_record STRING"}
    assert picked(folder.rows(hints), "a", "_corrupt_record") == [(1, None), (3, "3")]
    assert picked(folder.rows({**INFER, "badRecordsPath": str(tmp_path / "bad")}), "a") == [1]
    (written,) = (tmp_path / "bad").rglob("bad_records/*.json")
    assert '"record": "3"' in written.read_text()


def test_E02_a_new_column_ends_the_query_and_names_it(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id\n1\n")
    source = folder.open()
    source.columns()
    folder.put("b.csv", "id,d r\n2,x\n")
    with pytest.raises(UnknownFieldException, match=r"NEW_FIELDS_IN_FILE\].*\[d r\], which can be fixed by an automatic retry: true"):
        folder.rows(of=source, only="b.csv")
    folder.put("c.csv", "id,new\n")
    assert folder.rows(of=source, only="c.csv") == []  # no row, no reason to stop
    found = source._schema._infer_from_files([str(folder.root / "b.csv"), str(folder.root / "c.csv")], source.columns().data)
    assert found.simpleString() == "struct<d r:string>"


def test_new_columns_are_rescued_ignored_or_fatal_as_the_mode_says(csv: Callable[..., Folder]) -> None:
    for mode, expected in (("rescue", {"d": "x"}), ("none", None)):
        folder = csv(a="id\n1\n")
        source = folder.open({"cloudFiles.schemaEvolutionMode": mode, "rescuedDataColumn": "_rescued_data" if mode == "rescue" else "_r"})
        source.columns()
        folder.put("b.csv", 'id,d\n2,x\n3,"say ""hi"""\n')
        rows = folder.rows(of=source, only="b.csv")
        if expected:
            assert {row["id"]: rescued(row) for row in rows} == {"2": expected, "3": {"d": '"say ""hi"""'}}
        else:
            assert {row["id"]: rescued(row, "_r")["d"][:1] for row in rows} == {"2": "x", "3": '"'}
    folder = csv(a="id\n1\n")
    source = folder.open({"cloudFiles.schemaEvolutionMode": "none"})
    source.columns()
    folder.put("b.csv", "id,d\n2,x\n")
    assert folder.rows(of=source, only="b.csv") == [{"id": "2", "line": None}]
    source = csv(a="id\n1\n").open({"cloudFiles.schemaEvolutionMode": "failOnNewColumns"})
    source.columns()


def test_E14_a_wider_value_is_rescued_by_default(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id\n1\n")
    source = folder.open(INFER)
    source.columns()
    folder.put("b.csv", "id\n2147483648\n7\n")
    rows = folder.rows(of=source, only="b.csv")
    assert [(row["id"], rescued(row)) for row in rows] == [(7, None), (None, {"id": "2147483648"})]


def test_E15_a_wider_value_widens_its_column(csv: Callable[..., Folder]) -> None:
    options = {**INFER, "cloudFiles.schemaEvolutionMode": "addNewColumnsWithTypeWidening"}
    folder = csv(a="id,amt,hint\n1,2,3\n")
    source = folder.open({**options, "cloudFiles.schemaHints": "hint INT"})
    before = source.columns().data
    folder.put("b.csv", "id,amt,hint\n2147483648,1.25,3\nx,3,2147483648\n")
    with pytest.raises(UnknownFieldException, match=r"NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE\] Encountered unknown fields and type changes"):
        folder.rows(of=source, only="b.csv")
    seen = source._schema._infer_from_files([str(folder.root / "b.csv")], before)
    wide, added, widened = grow(before, seen, unless_hinted=frozenset({"hint"}))
    assert (added, widened) == ((), (("id", "int", "bigint"), ("amt", "int", "decimal(12,2)")))
    assert wide.simpleString() == "struct<id:bigint,amt:decimal(12,2),hint:int>"
    folder.put("c.csv", "id,amt,hint\nx,3,2147483648\n")
    (row,) = folder.rows(of=source, only="c.csv")
    assert rescued(row) == {"id": "x", "hint": "2147483648"}


def test_P03_listed_partition_columns(csv: Callable[..., Folder]) -> None:
    folder = csv().put("year=2022/week=1/f1.csv", "id\n1\n").put("year=2022/month=2/day=3/f2.csv", "id\n1\n")
    rows = folder.rows({"cloudFiles.partitionColumns": "year,month,day"})
    assert picked(rows, "year", "month", "day") == [("2022", "2", "3"), ("2022", None, None)]


def test_D07_pathGlobFilter_decides_by_file_name(csv: Callable[..., Folder]) -> None:
    folder = csv().put("y.csv", "id\n1\n").put("x.json", '{"n":1}\n')
    assert folder.types({"pathGlobFilter": "*.csv"}) == {"id": "string", "_rescued_data": "string"}
    with pytest.raises(LakeletError, match=r"cloudfiles\.pathglobfilter") as failure:
        folder.open({"cloudFiles.pathGlobFilter": "*.csv"})
    assert failure.value.code == "CF_UNKNOWN_OPTION_KEYS_ERROR"


def test_a_name_in_another_case_is_rescued_or_matched(csv: Callable[..., Folder]) -> None:
    apart: tuple[str | None, Any] = (None, {"Name": "y"})
    for options, expected in [
        ({}, apart),
        ({"readerCaseSensitive": "false"}, ("y", None)),
        ({"parserCaseSensitive": "false"}, ("y", None)),
    ]:
        folder = csv(a="name\nx\n")
        source = folder.open(options)
        source.columns()
        folder.put("b.csv", "Name\ny\n")
        (row,) = folder.rows(of=source, only="b.csv")
        assert (row["name"], rescued(row)) == expected


def test_names_of_a_header_that_are_empty_or_repeated(csv: Callable[..., Folder]) -> None:
    assert list(csv(a='a,A,,"",b\n1,2,3,4,5\n').types()) == ["a0", "A1", "_c2", "_c3", "b", "_rescued_data"]


def test_an_explicit_schema_is_bound_by_position_unless_values_are_rescued(csv: Callable[..., Folder]) -> None:
    schema = struct("a int,b int")
    folder = csv(a="b,a\n1,2\n")
    assert picked(folder.rows({"header": "true"}, schema), "a", "b") == [(1, 2)]
    assert picked(folder.rows({"header": "true", "enforceSchema": "false"}, schema), "a", "b") == [(2, 1)]
    assert picked(folder.rows({"header": "true", "rescuedDataColumn": "_r"}, schema), "a", "b", "_r") == [(2, 1, None)]
    rows = csv(a="1,2,9\n3\n").rows({"rescuedDataColumn": "_r"}, schema)
    assert [(row["a"], row["b"], rescued(row, "_r"), row["line"]) for row in rows] == [(1, 2, {"_c2": "9"}, 1), (3, None, None, -2)]


def test_without_a_rescued_column_what_does_not_fit_makes_a_record_malformed(csv: Callable[..., Folder]) -> None:
    folder = csv(a="1,2\nx,3\n4,5,6\n7,8,\n")
    schema = struct("a int,b int,_corrupt_record string")
    assert picked(folder.rows({}, schema), "a", "b", "_corrupt_record") == [(1, 2, None), (4, 5, "4,5,6"), (7, 8, "7,8,"), (None, 3, "x,3")]
    assert picked(folder.rows({"mode": "DROPMALFORMED"}, schema), "a") == [1]


def test_comments_go_first_then_skipped_rows_then_the_header(csv: Callable[..., Folder]) -> None:
    folder = csv(a="#c\nskip me\n\n#c\nskip,too\nid,v\n1,x\n# not a row\n2,#y\n")
    rows = folder.rows({**INFER, "comment": "#", "skipRows": "2"})
    assert picked(rows, "id", "v") == [(1, "x"), (2, "#y")]
    many = csv(a='"a\nb\nc",x\nid,v\n1,"p\nq"\n')
    assert picked(many.rows({**INFER, "skipRows": "1", "multiLine": "true"}), "id", "v") == [(1, "p\nq")]


@pytest.mark.parametrize("record", ["3,,", '3,a,""', "3,,,", '"3","a",'])
def test_FF15_surplus_values_without_content_make_a_record_malformed(csv: Callable[..., Folder], record: str) -> None:
    folder = csv(a=f"1,b\n{record}\n")
    found = picked(folder.rows({}, struct("id int,s string,_corrupt_record string")), "id", "_corrupt_record")
    assert sorted(found, key=repr) == [(1, None), (3, record)]
    assert picked(folder.rows({"mode": "DROPMALFORMED"}, struct("id int,s string")), "id") == [1]
    beside = folder.rows({"rescuedDataColumn": "_r"}, struct("id int,s string"))
    assert sorted(picked(beside, "id", "_r"), key=repr) == [(1, None), (3, None)]


BLANKS_ALONE = {  # text → values of `s`, the second column of two (`?`: the record is malformed), with multiLine
    "1,a\n   \n2,b\n": ["a", "b", "?"],
    "1,a\r\n \t\r\n2,b\r\n": ["a", "b", "?"],
    '"1","a"\n   \n"2","b"\n': ["a", "b", "?"],
    '"1","a\nz"\n   \n"2","b"\n': ["a\nz", "b", "?"],
    "1,a\n\n2,b\n\n": ["a", "b"],
}


@pytest.mark.parametrize("text", BLANKS_ALONE)
def test_FF43_a_line_of_blanks_is_a_record_with_multi_line(csv: Callable[..., Folder], text: str) -> None:
    folder, schema = csv(a=text), struct("id int,s string,_corrupt_record string")

    def second(**options: str) -> list[str]:
        rows = folder.rows({"multiLine": "true", **options}, schema)
        return sorted(("?" if row["_corrupt_record"] is not None else row["s"] for row in rows), reverse=True)

    wanted = sorted(BLANKS_ALONE[text], reverse=True)
    assert second() == second(ignoreTrailingWhiteSpace="true") == wanted
    assert second(ignoreLeadingWhiteSpace="true") == [value for value in wanted if value != "?"]
    if "z" not in text:
        assert second(multiLine="false") == [value for value in wanted if value != "?"]


def test_FF43_a_line_of_blanks_is_a_value_and_may_be_the_header(csv: Callable[..., Folder]) -> None:
    one = csv(a="1\n   \n2\n")
    assert sorted(row["s"] for row in one.rows({"multiLine": "true"}, struct("s string"))) == ["   ", "1", "2"]
    assert sorted(row["s"] for row in one.rows({}, struct("s string"))) == ["1", "2"]
    assert csv(a="   \n1\n").types({"multiLine": "true"}).keys() - {"_rescued_data"} == {"   "}


@pytest.mark.parametrize("multi_line", ["false", "true"])
@pytest.mark.parametrize("empty", ["", "E"])
def test_PA8_two_quotes_are_an_empty_value_where_nothing_escapes_a_quote(csv: Callable[..., Folder], empty: str, multi_line: str) -> None:
    folder = csv(a='1,""\n"",2\n3,"" \n4,""')
    rows = folder.rows({"escape": "", "emptyValue": empty, "multiLine": multi_line}, struct("id string,s string"))
    nothing = empty or None
    assert sorted(picked(rows, "id", "s"), key=repr) == sorted([("1", nothing), (nothing, "2"), ("3", nothing), ("4", nothing)], key=repr)


def test_quotes_escapes_and_what_stands_for_null(csv: Callable[..., Folder]) -> None:
    text = 'id,v\n1,"a,b"\n2,"say \\"hi\\""\n3,""\n4,\n5,NA\n6,"NA"\n7,c\\d\n8,"x""y"\n'
    rows = csv(a=text).rows({**INFER, "nullValue": "NA", "emptyValue": "-"})
    assert picked(rows, "id", "v") == [(1, "a,b"), (2, 'say "hi"'), (3, "-"), (4, None), (5, None), (6, None), (7, "c\\d"), (8, '"x""y"')]
    assert [value for _, value in picked(csv(a='id,v\n1,""\n2,"x""y"\n').rows({"escape": '"'}), "id", "v")] == [None, 'x"y']
    assert picked(csv(a="id;'v'\n1;'a;b'\n").rows({"sep": ";", "quote": "'"}), "v") == ["a;b"]
    assert picked(csv(a='id,v\n1,"a"\n').rows({"quote": ""}), "v") == ['"a"']


def test_separators_of_several_characters_and_spelled_ones(csv: Callable[..., Folder]) -> None:
    assert picked(csv(a='id||v\n1||x|y\n2||"p||q"\n').rows({"sep": "||"}), "id", "v") == [("1", "x|y"), ("2", "p||q")]
    lines = csv(a='id||v\n1||"p||q"\n2||"r\ns"\n')
    assert picked(lines.rows({"sep": "||", "multiLine": "true"}), "id", "v") == [("1", "p||q"), ("2", "r\ns")]
    assert picked(csv(a="id\tv\n1\tx\n").rows({"delimiter": "\\t"}), "id", "v") == [("1", "x")]
    assert picked(csv(a="id\x01v\n1\x01x\n").rows({"sep": "\\u0001"}), "id", "v") == [("1", "x")]


def test_blanks_around_values(csv: Callable[..., Folder]) -> None:
    folder = csv(a='id, v \n 1 , x \n2," y "\n3,   \n')
    assert picked(folder.rows(), "id", " v ") == [(" 1 ", " x "), ("2", " y "), ("3", "   ")]
    both = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
    assert picked(folder.rows({**both, **INFER}), "id", "v") == [(1, "x"), (2, " y "), (3, None)]


def test_records_of_several_lines(csv: Callable[..., Folder]) -> None:
    folder = csv(a='id,v\r\n1,"a\r\nb"\r\n\r\n2,c\r\n3\r\n')
    rows = folder.rows({**INFER, "multiLine": "true"})
    assert picked(rows, "id", "v", "line") == [(1, "a\nb", None), (2, "c", None), (3, None, -6)]
    assert len(folder.rows(INFER)) == 4  # line by line: two halves of the first record


def test_comments_between_records_of_several_lines(csv: Callable[..., Folder]) -> None:
    folder = csv(a='id,v\n#c\n1,"a\n#b"\n#d\n2,x"y\n#e')
    assert picked(folder.rows({"multiLine": "true", "comment": "#"}), "id", "v") == [("1", "a\n#b"), ("2", 'x"y')]


def test_line_ends_and_their_option(csv: Callable[..., Folder]) -> None:
    for end in ("\n", "\r\n", "\r"):
        assert picked(csv(a=f"id,v{end}1,x{end}2,y{end}").rows(INFER), "id", "v") == [(1, "x"), (2, "y")]
    assert picked(csv(a="id,v;1,x;2,y").rows({**INFER, "lineSep": ";"}), "id", "v") == [(1, "x"), (2, "y")]


NEWLINES = [  # what Spark 4.2 reads
    ('id,v{n}1,"a{n}b"{n}2,c{n}', [("1", "a\nb"), ("2", "c")]),
    ('id,v{n}1,"a{n}{n}b{n}"{n}', [("1", "a\n\nb\n")]),
    ('id,v{n}1,"a\\"{n}b"{n}2,"{n}"', [("1", 'a"\nb'), ("2", "\n")]),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("text", "rows"), NEWLINES)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-8-sig"])
def test_FF32_the_newline_of_a_file_is_lf_inside_quotes(
    csv: Callable[..., Folder], newline: str, text: str, rows: list[Any], codec: str
) -> None:
    folder = csv(a=text.replace("{n}", newline).encode(codec))
    options = {"multiLine": "true", **({"encoding": codec} if codec == "utf-16" else {})}
    assert picked(folder.rows(options), "id", "v") == rows
    many = csv(a=("id,v{n}" + '"7","a{n}b"{n}' * 3000 + '8,x"y{n}').replace("{n}", newline).encode(codec))
    assert picked(many.rows(options), "id", "v") == [("7", "a\nb")] * 3000 + [("8", 'x"y')]
    given = picked(folder.rows({**options, "lineSep": newline}), "id", "v")
    assert given == [(key, value.replace("\n", newline)) for key, value in rows]


def test_FF32_a_header_with_line_ends_has_lf_too(csv: Callable[..., Folder]) -> None:
    for newline in ("\n", "\r\n", "\r"):
        text = f'id,"first{newline}name"{newline}1,"a{newline}b"{newline}'
        assert picked(csv(a=text).rows({"multiLine": "true"}), "first\nname") == ["a\nb"]
        assert csv(a=text).types({"multiLine": "true", "lineSep": newline}) == {
            "id": "string", f"first{newline}name": "string", "_rescued_data": "string"
        }  # fmt: skip


MIXED = [  # what Spark 4.2 reads: the first line end is the newline; others are data, but for LF at the border of a value
    ("id,v\r\n1,a\n2\r\n3,c\r\n", [("1", "a\n2"), ("3", "c")]),
    ("id,v\n1,a\r\n2,b\r\n", [("1", "a\r"), ("2", "b\r")]),
    ("id,v\r\n1,a\r2\r\n", [("1", "a\r2")]),
    ("id,v\r1,a\n2\r", [("1", "a\n2")]),
    ('id,v\r\n1,"a"\n2,"b"\r\n3,"c\nd\re"\r\n', [("1", "a"), ("2", "b"), ("3", "c\nd\re")]),
    ('id,v\r1,"a"\n2,"b"\r3,"x\r\ny"\r\n4,"d"\r', [("1", "a"), ("2", "b"), ("3", "x\n\ny"), ("4", "d")]),
    ('id,v\n1,"a"\r\n2,"x\r\ny"\n', [("1", "a"), ("2", "x\r\ny")]),
    ("id,v\r\n1,a\n,\n2,b\r\n", [("1", "a\n"), ("2", "b")]),
    ("id,v\r\n1,\n2,b\r\n", [("1", None), ("2", "b")]),
    ('id,v\r\n1,a"x\ny"\r\n', [("1", 'a"x\ny"')]),
]


@pytest.mark.parametrize(("text", "rows"), MIXED)
def test_FF32_other_line_ends_than_the_first_are_data(csv: Callable[..., Folder], text: str, rows: list[Any]) -> None:
    found = csv(a=text).rows(
        {"multiLine": "true", "cloudFiles.schemaEvolutionMode": "rescue", "cloudFiles.schemaHints": "id STRING, v STRING"}
    )
    assert picked(found, "id", "v") == rows


def test_encodings(csv: Callable[..., Folder]) -> None:
    for name in ("ISO-8859-1", "UTF-16LE", "utf-8"):
        assert picked(csv(a="id,größe\n1,ä\n".encode(name)).rows({"encoding": name}), "größe") == ["ä"]
    assert picked(csv(a=b"\xef\xbb\xbfid\n1\n").rows(), "id") == ["1"]
    with pytest.raises(LakeletError, match="encoding must be the name of a charset"):
        csv(a="id\n").open({"encoding": "klingon"})


def test_bytes_that_are_not_utf8_can_be_recovered(csv: Callable[..., Folder]) -> None:
    rows = csv(a=b"id,v\n1,\xff\xfe\n2,ok\n").rows(INFER)
    assert picked(rows, "id", "v") == [(1, "\ufffd\ufffd"), (2, "ok")]
    assert [rescued(row) for row in rows if row["id"] == 1] == [{"_corrupt_record_base64": "MSz//g=="}]


def test_dates_numbers_and_patterns(csv: Callable[..., Folder]) -> None:
    schema = struct("d date,at timestamp,n double,p decimal,b binary")
    options = {"dateFormat": "dd/MM/yyyy", "timestampFormat": "dd.MM.yyyy HH:mm", "nanValue": "nil", "positiveInf": "max", "header": "true"}
    folder = csv(a="d,at,n,p,b\n02/01/2024,02.01.2024 03:04,nil,1.50,x\n31/12/2024,01.01.2024 00:00,max,2,y\n")
    rows = folder.rows(options, schema)
    assert picked(rows, "d") == [datetime.date(2024, 1, 2), datetime.date(2024, 12, 31)]
    assert rows[0]["at"].isoformat() == "2024-01-02T03:04:00+00:00"
    assert repr(rows[0]["n"]) == "nan"
    assert rows[1]["n"] == float("inf")
    assert [str(row["p"]) for row in rows] == ["1.50", "2.00"]
    assert rows[0]["b"] == b"x"
    with pytest.raises(LakeletError, match="dateFormat") as failure:
        folder.open({"dateFormat": "e-YYYY"})
    assert failure.value.code == "CF_INVALID_OPTION_VALUE"


def test_texts_that_do_not_fit_their_type(csv: Callable[..., Folder]) -> None:
    schema = struct("i int,l long,d date,p decimal,ok boolean,n double")
    texts = {"i": ["3000000000", " 1", "0x1F", "1.0"], "d": ["2024-1-32", "2024-02-30"], "p": ["1.555", "1000.00"], "ok": ["1", "T"]}
    texts["n"] = ["1e", "nan", "x"]
    for column, values in texts.items():
        for value in values:
            cells = [value if name == column else "" for name in schema.fieldNames()]
            (row,) = csv(a=",".join(schema.fieldNames()) + "\n" + ",".join(cells) + "\n").rows(
                {"header": "true", "rescuedDataColumn": "_r"}, schema
            )
            assert (row[column], rescued(row, "_r")) == (None, {column: value})
    for column, value, expected in [
        ("i", "+5", 5),
        ("d", "2024-1-2", datetime.date(2024, 1, 2)),
        ("d", "2024-01-02 10:00:00", datetime.date(2024, 1, 2)),
        ("i", "007", 7),
        ("ok", "tRuE", True),
        ("n", "1d", 1.0),
        ("n", " 2 ", 2.0),
        ("l", "-0", 0),
    ]:
        cells = [value if name == column else "" for name in schema.fieldNames()]
        (row,) = csv(a=",".join(schema.fieldNames()) + "\n" + ",".join(cells) + "\n").rows({"header": "true"}, schema)
        assert row[column] == expected, (column, value)


def test_records_beyond_the_limits_are_broken(csv: Callable[..., Folder]) -> None:
    rows = csv(a="a,b\n1,2\n1,2,3,4\n").rows({"maxColumns": "3"})
    assert [(row["a"], rescued(row)) for row in rows] == [("1", None), (None, {"_corrupt_record": "1,2,3,4"})]
    rows = csv(a="a,b\n1,2\n1,long text\n").rows({"maxCharsPerColumn": "5"})
    assert [(row["a"], rescued(row)) for row in rows] == [("1", None), (None, {"_corrupt_record": "1,long text"})]
    rows = csv(a='a,b\n1,2\n1,"x"y"\n').rows({"unescapedQuoteHandling": "RAISE_ERROR"})
    assert [(row["a"], rescued(row)) for row in rows] == [("1", None), (None, {"_corrupt_record": '1,"x"y"'})]


@pytest.mark.parametrize("parts", [2, 3, 7, 40])
def test_byte_ranges_together_are_the_file(csv: Callable[..., Folder], parts: int) -> None:
    text = "#c\nskip\nid,v\n" + "".join(f"{n},value {n}\n" for n in range(50)) + "x,bad\n51\n"
    folder = csv(a=text)
    options = {"comment": "#", "skipRows": "1", "cloudFiles.schemaHints": "id INT"}
    assert picked(folder.rows(options, parts=parts), "id", "v", "line") == picked(folder.rows(options), "id", "v", "line")
    assert len(folder.rows(options, parts=parts)) == 52


def test_what_can_be_split(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id\n1\n")
    for options, expected in [({}, True), ({"multiLine": "true"}, False), ({"encoding": "UTF-16"}, False), ({"lineSep": ";"}, False)]:
        source = folder.open(options)
        assert source._options.format.splittable(source._options.reader, "/x/a.csv") is expected
        assert source._options.format.splittable(source._options.reader, "/x/a.csv.gz") is False


def test_options_without_effect_say_so_and_others_are_refused(csv: Callable[..., Folder]) -> None:
    folder = csv(a="id\n1\n")
    notices = folder.open({"mergeSchema": "true", "inferSchema": "true", "samplingRatio": "0.5"}).notices
    assert [notice.split()[1] for notice in notices] == ["mergeSchema", "inferSchema", "samplingRatio"]
    for key in ("failOnUnknownFields", "failOnWidenedFields"):
        with pytest.raises(LakeletError, match=key):
            folder.open({key: "true"})
    for options in ({"quote": ","}, {"sep": "\\n"}, {"multiLine": "true", "unescapedQuoteHandling": "BACK_TO_DELIMITER"}):
        with pytest.raises(LakeletError) as failure:
            folder.open(options)
        assert failure.value.code == "CF_INCONSISTENT_OPTIONS"
    with pytest.raises(LakeletError, match="array<int>"):
        folder.open(schema=t.StructType([t.StructField("a", t.ArrayType(t.IntegerType()))]))


def test_every_value_of_a_row_is_in_a_column_or_rescued(csv: Callable[..., Folder]) -> None:
    rows: list[dict[str, Any]] = csv(a="a,b\n1,x,y,,z\n").rows({**INFER, "cloudFiles.schemaHints": "b INT"})
    assert (rows[0]["a"], rows[0]["b"], rescued(rows[0])) == (1, None, {"b": "x", "_c2": "y", "_c4": "z"})


def test_rows_without_a_value_in_any_rescued_column_stay(tmp_path: Path) -> None:
    """pyarrow leaves out the rows in which everything that is joined is NULL."""
    from autoloading import Program

    (tmp_path / "in").mkdir()
    one = Program(tmp_path / "in", tmp_path, {"cloudFiles.format": "csv", "header": "true", "rescuedDataColumn": "_r"}, "name STRING")
    one.put("a.csv", "extra,name,more\n1,a,2\n,b,\n3,c,\n").run()
    assert [(name, kept is None) for name, kept in one.rows("name", "_r")] == [("a", False), ("b", True), ("c", False)]


@pytest.mark.parametrize("options", [{}, {"multiLine": "true"}])
def test_FF33_bytes_that_are_not_of_the_encoding_are_found_with_their_column(csv: Callable[..., Folder], options: dict[str, str]) -> None:
    folder = csv(a=b'id,name,city\n1,Ann,Rome\n2,"Fran\xe7ois",Paris\n3,x,K\xf6ln\n')
    rows = folder.rows(options)
    assert [(row["name"], row["line"] & BAD_BYTES != 0) for row in rows if row["id"] == "2"] == [("Fran\ufffdois", True)]
    uri = f"file:{folder.root}/" + next(path.name for path in folder.root.iterdir())
    told = folder.open(options).explained(uri, 3) or ""
    what, _, todo = told.partition(". ")
    assert what.endswith(", line 3, column name: the byte 0xE7 is not UTF-8")
    assert todo == 'It looks like ISO-8859-1: .option("encoding", "ISO-8859-1") on the reader reads it'
    assert ", line 4, column city: the byte 0xF6" in (folder.open(options).explained(uri, 4) or "")
    schema = struct("id string,name string,city string")
    for mode in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"):  # as in Spark, such a record is not malformed
        given = folder.rows({"header": "true", "mode": mode, **options}, schema)
        assert [row["name"] for row in given] == ["Ann", "Fran\ufffdois", "x"]


@pytest.mark.parametrize("options", [{}, {"lineSep": "\r"}, {"lineSep": "\r", "multiLine": "true"}])
def test_PA3_a_byte_that_is_not_of_the_charset_is_one_replacement_character(csv: Callable[..., Folder], options: dict[str, str]) -> None:
    schema = struct("id int,s string,_corrupt_record string")
    rows = csv(a=b"id,s\r1,K\xf6ln\rx,K\xf6ln\r").rows({"header": "true", **options}, schema)
    assert [(row["s"], row["_corrupt_record"]) for row in rows] == [("K\ufffdln", None), ("K\ufffdln", "x,K\ufffdln")]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-32"])
def test_FF33_a_wide_encoding_that_is_not_given_is_refused_by_name(csv: Callable[..., Folder], codec: str) -> None:
    folder = csv(a="id,v\n1,x\n".encode(codec))
    for options in ({}, {"multiLine": "true"}, {"lineSep": "\r"}, {"lineSep": "\r", "multiLine": "true"}):
        with pytest.raises(LakeletError, match="FAILED_READ_FILE") as failure:
            folder.rows(options)
        assert "It looks like " + ("UTF-32LE" if codec == "utf-32" else "UTF-16BE" if codec == "utf-16-be" else "UTF-16LE") in str(
            failure.value
        )
    assert picked(folder.rows({"encoding": codec}), "id", "v") == [("1", "x")]


def test_FF1_windows_1252_has_the_characters_of_java(csv: Callable[..., Folder]) -> None:
    for options in ({}, {"multiLine": "true"}):
        rows = csv(a=b"id,v\n1,\x80 Fran\xe7ois\n2,\x81\x8d\x93\n").rows({"encoding": "windows-1252", **options})
        assert picked(rows, "id", "v") == [("1", "\u20ac Fran\xe7ois"), ("2", "\ufffd\ufffd\u201c")]
        assert [rescued(row) for row in rows if row["id"] == "2"] == [{"_corrupt_record_base64": "MiyBjZM="}]


def test_FF34_a_number_beyond_its_type_is_infinite(csv: Callable[..., Folder]) -> None:
    rows = csv(a="n,f\n1e400,1e39\n-1e400,-1e39\n7,7\n").rows(
        {"header": "true"}, t.StructType([t.StructField("n", t.DoubleType()), t.StructField("f", t.FloatType())])
    )
    assert picked(rows, "n") == picked(rows, "f") == [-math.inf, 7, math.inf]
    assert csv(a="n\n1e400\n").types(INFER)["n"] == "double"


def test_FF36_enforceSchema_without_effect_is_noticed(csv: Callable[..., Folder]) -> None:
    def notices(schema: Any, **options: str) -> list[str]:
        return [text for text in csv(a="id\n1\n").open(options, schema).notices if "enforceSchema" in text]

    for schema, options in (
        (None, {}),
        (struct("id int"), {"rescuedDataColumn": "_r"}),
        (None, {"cloudFiles.schemaEvolutionMode": "none"}),
    ):
        for value in ("true", "false"):
            (text,) = notices(schema, enforceSchema=value, **options)
            assert text.startswith("option enforceSchema has no effect here: ")
            assert "CSV_ENFORCE_SCHEMA_NOT_SUPPORTED" in text
            assert notices(schema, **options) == []
    assert notices(struct("id int"), enforceSchema="false") == []
