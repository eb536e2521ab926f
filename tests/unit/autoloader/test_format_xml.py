"""XML: rows are elements, fields are attributes, children and texts; what does not fit is rescued as text (FF-18, FF-19; case I11)."""

from __future__ import annotations

import tracemalloc
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from autoloading import INFER, Program, rescued
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, dump
from lakelet.autoloader.formats.xml.elements import XmlRules, rows_of, tree_of
from lakelet.base.errors import LakeletError

Make = Callable[..., Program]
XML = {"cloudFiles.format": "xml", "rowTag": "r"}
TYPED = {**XML, **INFER}


@pytest.fixture
def source(tmp_path: Path) -> Make:
    made: list[int] = []

    def make(options: dict[str, str], schema: Any = None) -> Program:
        made.append(1)
        return Program(tmp_path / str(len(made)) / "in", tmp_path / str(len(made)), options, schema)

    return make


def cut(text: str, size: int) -> list[str]:
    pieces: Iterator[str] = (text[at : at + size] for at in range(0, len(text), size))
    return list(rows_of(pieces, XmlRules("r")))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_rows_are_cut_out_wherever_the_pieces_of_a_text_end(size: int) -> None:
    assert cut("<?xml version='1.0'?><rs><r>1</r>\n<r/><rr>no</rr><r a='>'/></rs>", size) == ["<r>1</r>", "<r/>", "<r a='>'/>"]
    assert cut("<rs><!-- <r>no</r> --><r><![CDATA[</r>]]></r><?pi <r> ?></rs>", size) == ["<r><![CDATA[</r>]]></r>"]
    assert cut("<r><r>inner</r><r/></r ><r>2</r>", size) == ["<r><r>inner</r><r/></r >", "<r>2</r>"]
    assert cut("<rs><r>1</r><r><n>2", size) == ["<r>1</r>", "<r><n>2"]
    assert cut("<rs></rs>", size) == cut("", size) == cut(" \n", size) == []
    assert cut("no xml <r>1</r>", size) == ["no xml <r>1</r>"]


def test_a_long_file_is_never_held_as_a_whole() -> None:
    pieces = ("<r><n>1</n></r>" * 100 for _ in range(300))
    tracemalloc.start()
    assert sum(1 for _ in rows_of(pieces, XmlRules("r"))) == 30_000
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "rules", "tree"),
    [
        ('<r id="1"><n> 5 </n><l>1</l><l>2</l></r>', {}, '{"_id":"1","n":"5","l":"1","l":"2"}'),
        ('<r><n> 5 </n><t a=" x "> y </t></r>', {"trim": False}, '{"n":" 5 ","t":{"_a":" x ","_VALUE":" y "}}'),
        ('<r a="1">x<b/>y</r>', {}, '{"_a":"1","_VALUE":"x","b":"","_VALUE":"y"}'),
        ("<r>x</r>", {"value_tag": "text"}, '{"text":"x"}'),
        ('<r a="1"><n u="m">5</n></r>', {"attribute_prefix": "@"}, '{"@a":"1","n":{"@u":"m","_VALUE":"5"}}'),
        ('<r a="1"><n u="m">5</n></r>', {"exclude_attributes": True}, '{"n":"5"}'),
        ('<r><x:n x:u="1">5</x:n></r>', {}, '{"x:n":{"_x:u":"1","_VALUE":"5"}}'),
        ('<x:r><x:n x:u="1">5</x:n></x:r>', {"ignore_namespace": True}, '{"n":{"_u":"1","_VALUE":"5"}}'),
        ("<r><a>-</a><b>x</b></r>", {"null_value": "-"}, '{"a":null,"b":"x"}'),
        ("<r><a>&lt;&amp;&#228;<![CDATA[<b>]]></a></r>", {}, '{"a":"<&ä<b>"}'),
        ("<r/>", {}, "{}"),
    ],
)
def test_elements_become_trees(text: str, rules: dict[str, Any], tree: str) -> None:
    assert dump(tree_of(text, XmlRules("r", **rules))) == tree


@pytest.mark.parametrize(
    "text", ["<r><a></r>", "<r>&bomb;</r>", "<r a=1/>", "<r>\x01</r>", "<r>" + "<a>" * 300 + "</a>" * 300 + "</r>", "x"]
)
def test_what_is_no_element_is_broken(text: str) -> None:
    with pytest.raises(BrokenText):
        tree_of(text, XmlRules("r"))


def test_I11_attributes_children_and_repeated_tags_have_types(source: Make) -> None:
    one = source(TYPED).put("a.xml", '<rs><r id="1"><n>5</n><l>1</l><l>2</l></r></rs>').run()
    assert one.types() == {"_id": "bigint", "l": "array<bigint>", "n": "bigint", "_rescued_data": "string"}
    assert one.last() == {"_id": 1, "l": [1, 2], "n": 5, "_rescued_data": None}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["5", "-7"], "bigint"),
        (["5", "1.5"], "double"),
        (["12345678901234567890"], "double"),
        (["1e3"], "double"),
        (["true", "FALSE"], "boolean"),
        (["2024-01-02"], "date"),
        (["2024-01-02T03:04:05Z"], "timestamp"),
        (["2024-01-02", "2024-01-02 03:04:05"], "timestamp"),
        (["x", "5"], "string"),
        (["true", "5"], "string"),
        (["", ""], "string"),
        (["", "5"], "bigint"),
        (["NaN"], "string"),
        (["1d", "1f"], "string"),
        (["2024-2-9"], "timestamp"),
        (["2024-02"], "timestamp"),
        (["2024-02-09T10"], "timestamp"),
        (["12:30"], "string"),
        (["2024-02-30"], "string"),
    ],
)
def test_texts_have_sparks_types_or_stay_texts(source: Make, values: list[str], kind: str) -> None:
    text = "<rs>" + "".join(f"<r><v>{value}</v></r>" for value in values) + "</rs>"
    assert source(TYPED).put("a.xml", text).types()["v"] == kind
    assert source(XML).put("a.xml", text).types()["v"] == "string"


def test_structs_and_arrays_are_kept_with_and_without_types(source: Make) -> None:
    text = '<rs><r><o><k>1</k></o><t u="m">5</t></r><r><o><k>2</k><k>3</k></o><t>6</t></r></rs>'
    one = source(TYPED).put("a.xml", text).run()
    assert one.types() == {"o": "struct<k:array<bigint>>", "t": "struct<_VALUE:bigint,_u:string>", "_rescued_data": "string"}
    assert one.rows("o", "t") == [({"k": [1]}, {"_VALUE": 5, "_u": "m"}), ({"k": [2, 3]}, {"_VALUE": 6, "_u": None})]
    plain = source(XML).put("a.xml", text).run()
    assert plain.types() == {"o": "struct<k:array<string>>", "t": "struct<_VALUE:string,_u:string>", "_rescued_data": "string"}


def test_a_misfit_nulls_its_field_only_and_is_rescued_as_text(source: Make) -> None:
    one = source(TYPED).put("a.xml", '<rs><r id="1"><n>5</n><o><d>2024-01-02</d><k>1</k></o><b>true</b></r></rs>').run()
    one.put("b.xml", '<rs><r id="x"><n>5.5</n><o><d>never</d><k>2</k></o><b>2</b></r></rs>').run()
    row = one.last()
    assert (row["_id"], row["n"], row["o"], row["b"]) == (None, None, {"d": None, "k": 2}, None)
    assert rescued(row["_rescued_data"], "b.xml") == {"_id": "x", "n": "5.5", "o": {"d": "never"}, "b": "2"}
    one.put("c.xml", "<rs><r><n>1</n><n>2</n><b/><o/></r></rs>").run()
    assert (one.last()["n"], rescued(one.last()["_rescued_data"])) == (2, {"n": "1"})


@pytest.mark.parametrize(
    ("element", "text", "attributes"),
    [
        ('<n k="v"/>', "", {"_k": "v"}),
        ('<n k="v"> z </n>', "z", {"_k": "v"}),
        ('<n k="v">a <b x="1" y=\'2\'>c &amp; d</b> e</n>', 'a <b x="1" y="2">c & d</b> e', {"_k": "v"}),
        ("<n><b/>x<!-- no --><![CDATA[ <raw> ]]></n>", "<b></b>x <raw>", None),
        ("<n>\n  <b>1</b>\n  <c>  é </c>\n</n>", "<b>1</b>\n  <c>  é </c>", None),
        ('<n xmlns:q="u"><q:b q:z="1">t</q:b></n>', '<q:b q:z="1">t</q:b>', {"_xmlns:q": "u"}),
    ],
)
def test_FF19_a_text_column_takes_what_stands_between_the_tags_as_sparks_reader_does(source: Make, element, text, attributes) -> None:
    schema = t.StructType([t.StructField("n", t.StringType()), t.StructField("a", t.ArrayType(t.StringType()))])
    one = source({**XML, "rescuedDataColumn": "_r"}, schema)
    one.put("a.xml", f"<rs><r>{element}</r><r>{element.replace('<n', '<a').replace('</n', '</a')}<a>2</a></r></rs>").run()
    first, second = one.batches[-1]
    assert (first["n"], second["a"]) == (text, [text, "2"])
    if attributes is None:
        assert (first["_r"], second["_r"]) == (None, None)
    else:
        assert rescued(first["_r"]) == {"n": attributes}
        assert rescued(second["_r"]) == {"a": [attributes, None]}


def test_FF19_a_number_with_an_attribute_fills_its_column_and_the_attribute_is_rescued(source: Make) -> None:
    one = source(TYPED).put("a.xml", "<rs><r><p>5.5</p><l>1</l><l>2</l><o><q>1</q></o></r></rs>").run()
    one.put("b.xml", '<rs><r><p cur="EUR">7.5</p><l u="m">3</l><o><q e="1">4</q></o></r><r><p cur="EUR"/><p>1<z/></p></r></rs>').run()
    first, second = one.batches[-1]
    assert (first["p"], first["l"], first["o"]) == (7.5, [3], {"q": 4})
    assert rescued(first["_rescued_data"]) == {"p": {"_cur": "EUR"}, "l": [{"_u": "m"}], "o": {"q": {"_e": "1"}}}
    assert second["p"] is None
    assert rescued(second["_rescued_data"]) == {"p": [{"_cur": "EUR"}, None, {"_VALUE": "1", "z": ""}]}


def test_FF19_an_element_without_content_is_a_struct_without_values(source: Make) -> None:
    kinds = "o STRUCT<p: INT>, l ARRAY<STRUCT<p: INT>>, m MAP<STRING, INT>"
    one = source({**TYPED, "cloudFiles.schemaHints": kinds})
    one.put("a.xml", '<rs><r><o/><l/><l><p>1</p></l><m/></r><r><m><a k="1">5</a></m></r></rs>').run()
    first, second = one.batches[-1]
    assert (first["o"], first["l"], first["m"]) == ({"p": None}, [{"p": None}, {"p": 1}], None)
    assert (dict(second["m"]), rescued(second["_rescued_data"])) == ({"a": 5}, {"m": {"a": {"_k": "1"}}})


def test_FF55_an_empty_nullValue_makes_null_of_a_text_without_content_and_no_null_of_a_struct(source: Make) -> None:
    kinds = "s STRING, o STRUCT<p: STRING, _x: STRING>, l ARRAY<STRUCT<p: STRING>>, a ARRAY<STRING>, e STRUCT<_VALUE: STRING>"
    one = source({**TYPED, "nullValue": "", "cloudFiles.schemaHints": kinds})
    one.put("a.xml", '<rs><r><s/><o/><l/><a/><a>1</a><e> </e></r><r><s x="1"/><o x=""><p/></o></r></rs>').run()
    first, second = one.batches[-1]
    assert (first["s"], first["o"], first["l"]) == (None, {"p": None, "_x": None}, [{"p": None}])
    assert (first["a"], first["e"]) == ([None, "1"], {"_VALUE": None})
    assert (second["s"], second["o"]) == (None, {"p": None, "_x": None})


def test_FF55_blanks_alone_are_a_text_of_a_text_column_and_none_of_a_struct(source: Make) -> None:
    kinds = "s STRING, e STRUCT<_VALUE: STRING, _x: STRING>"
    one = source({**TYPED, "ignoreSurroundingSpaces": "false", "cloudFiles.schemaHints": kinds})
    one.put("a.xml", '<rs><r><s> </s><e> </e></r><r><s x="1"> \n</s><e x="1"> a </e></r></rs>').run()
    first, second = one.batches[-1]
    assert (first["s"], first["e"]) == (" ", {"_VALUE": None, "_x": None})
    assert (second["s"], second["e"]) == (" \n", {"_VALUE": " a ", "_x": "1"})


def test_FF55_spaces_of_unicode_are_a_part_of_the_text(source: Make) -> None:
    one = source(XML, "s STRING").put("a.xml", "<rs><r><s> \u00a0a\u2003 </s></r><r><s>&#160;</s></r></rs>").run()
    assert [row["s"] for row in one.batches[0]] == ["\u00a0a\u2003", "\u00a0"]


def test_unknown_elements_and_attributes_evolve_or_are_rescued(source: Make) -> None:
    new = '<rs><r new="1"><n>2</n><l>a</l><l>b</l><o><x>1</x></o></r></rs>'
    one = source(TYPED).put("a.xml", "<rs><r><n>1</n></r></rs>").run().put("b.xml", new)
    one.stops("NEW_FIELDS_IN_RECORD_WITH_FILE_PATH", '{"_new":"1","l":["a","b"],"o":{"x":"1"}}')
    assert one.run().last() == {"n": 2, "_new": 1, "l": ["a", "b"], "o": {"x": 1}, "_rescued_data": None}
    one.put("c.xml", "<rs><r><o><x>1</x><y>2</y></o></r></rs>").stops(blob='{"o":{"y":"2"}}')
    assert one.run().last()["o"] == {"x": 1, "y": 2}
    kept = (
        source({**TYPED, "cloudFiles.schemaEvolutionMode": "rescue"}).put("a.xml", "<rs><r><n>1</n></r></rs>").run().put("b.xml", new).run()
    )
    assert rescued(kept.last()["_rescued_data"]) == {"_new": "1", "l": ["a", "b"], "o": {"x": "1"}}


def test_numbers_widen_where_the_mode_says_so(source: Make) -> None:
    one = source({**TYPED, "cloudFiles.schemaEvolutionMode": "addNewColumnsWithTypeWidening"})
    one.put("a.xml", "<rs><r><n>1</n></r></rs>").run().put("b.xml", "<rs><r><n>1.5</n></r><r><n>x</n></r></rs>")
    one.stops("NEW_FIELDS_AND_WIDENED_TYPES_IN_RECORD_WITH_FILE_PATH", '{"n":"1.5"}')
    assert one.run().types()["n"] == "decimal(21,1)"
    assert one.rows("n") == [1, Decimal("1.5"), None]


BROKEN = "<rs><r><n>1</n></r><r><n>2</m></r><r><n>3</n></r><r><n>4"


def test_broken_rows_follow_the_mode_and_spare_the_others(source: Make) -> None:
    schema = t.StructType([t.StructField("n", t.LongType())])
    one = source({**XML, "rescuedDataColumn": "_r"}, schema).put("a.xml", BROKEN).run()
    texts = [rescued(row["_r"])["_corrupt_record"] for row in one.batches[-1] if row["_r"]]
    assert (one.rows("n"), texts) == ([1, 3, None, None], ["<r><n>2</m></r>", "<r><n>4"])
    assert source({**XML, "mode": "DROPMALFORMED"}, schema).put("a.xml", BROKEN).run().rows("n") == [1, 3]
    source({**XML, "mode": "FAILFAST"}, schema).put("a.xml", BROKEN).fails("record 2", "MALFORMED_RECORD_IN_PARSING", "<r><n>2</m></r>")
    corrupt = source({**TYPED, "cloudFiles.schemaHints": "_corrupt_record STRING"}).put("a.xml", BROKEN).run()
    assert [text for text in corrupt.rows("_corrupt_record") if text] == ["<r><n>2</m></r>", "<r><n>4"]


def test_FF33_a_byte_of_another_encoding_breaks_its_row_and_is_kept(source: Make) -> None:
    schema = t.StructType([t.StructField("n", t.StringType())])
    broken = b"<r><n>caf\xe9</n></r>"
    one = source({**XML, "rescuedDataColumn": "_r"}, schema).put("a.xml", b"<rs><r><n>1</n></r>" + broken + b"</rs>").run()
    assert one.rows("n") == ["1", None]
    kept = rescued(one.batches[0][1]["_r"])
    assert kept == {"_corrupt_record": "<r><n>caf\ufffd</n></r>", "_corrupt_record_base64": b64encode(broken).decode()}


def test_FS35_without_a_rescued_column_a_value_that_does_not_fit_breaks_its_row(source: Make) -> None:
    schema = t.StructType([t.StructField("id", t.IntegerType()), t.StructField("v", t.IntegerType())])
    text = '<rs><r><id>1</id><v u="x">5</v></r><r><id>2</id><v>x</v></r><r><id>3</id><v>1</v><v>2</v></r></rs>'
    assert source(XML, schema).put("a.xml", text).run().rows("id", "v") == [(1, 5), (2, None), (3, 2)]
    assert source({**XML, "mode": "DROPMALFORMED"}, schema).put("a.xml", text).run().rows("id", "v") == [(1, 5), (3, 2)]
    source({**XML, "mode": "FAILFAST"}, schema).put("a.xml", text).fails("record 2", "MALFORMED_RECORD_IN_PARSING", "<v>x</v>")


def test_entities_are_never_expanded_beyond_xmls_own(source: Make) -> None:
    bomb = '<!DOCTYPE rs [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><rs><r><n>&b;</n></r><r><n>&amp;</n></r></rs>'
    one = source(XML).put("a.xml", bomb).run()
    assert one.rows("n") == ["&", None]
    assert rescued(next(row for row in one.batches[-1] if row["n"] is None)["_rescued_data"]) == {"_corrupt_record": "<r><n>&b;</n></r>"}


def test_values_of_every_scalar_type(source: Make) -> None:
    kinds = {
        "i": t.IntegerType(),
        "f": t.DoubleType(),
        "d": t.DateType(),
        "at": t.TimestampType(),
        "dec": t.DecimalType(5, 2),
        "s": t.StringType(),
    }
    schema = t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])
    options = {**XML, "rescuedDataColumn": "_r", "dateFormat": "dd.MM.yyyy", "timeZone": "Asia/Tokyo"}
    one = source(options, schema)
    one.put("a.xml", "<r><i>+5</i><f>NaN</f><d>01.02.2026</d><at>2026-01-02 09:00:00</at><dec>1.5</dec><s><b>x</b></s></r>").run()
    row = one.last()
    assert (row["i"], str(row["f"]), row["d"], row["at"]) == (5, "nan", date(2026, 2, 1), datetime(2026, 1, 2))
    assert (row["dec"], row["s"], row["_r"]) == (Decimal("1.50"), "<b>x</b>", None)
    one.put("b.xml", "<r><i>3000000000</i><dec>1.234</dec></r>").run()
    assert rescued(one.last()["_r"]) == {"i": "3000000000", "dec": "1.234"}


def test_FF44_a_double_is_what_javas_parser_takes_as_a_whole(source: Make) -> None:
    one = source({**XML, "rescuedDataColumn": "_r"}, t.StructType([t.StructField("f", t.FloatType()), t.StructField("d", t.DoubleType())]))
    numbers = {"1d": 1, "-.5F": -0.5, "1.e3D": 1000, "0x1.8p1": 3, "+Infinity": inf, "-Infinity": -inf, "1e400": inf}
    others = ("1L", "12abc", "1,5", "Inf", "INF", "nan", "0x1")
    rows = "".join(f"<r><d>{text}</d><f>{text}</f></r>" for text in (*numbers, *others))
    found = one.put("a.xml", f"<rs>{rows}</rs>").run().batches[0]
    assert [(row["d"], row["f"]) for row in found] == [(n, n) for n in numbers.values()] + [(None, None)] * len(others)
    assert [rescued(row["_r"]) for row in found] == [None] * len(numbers) + [{"d": text, "f": text} for text in others]


def test_FF44_a_date_has_the_form_of_its_pattern(source: Make) -> None:
    rows = "".join(
        f"<r><d>{text}</d></r>" for text in ("2024-02-09", " 2024-02-09 ", "2024-2-9", "2024", "2024-02-09T10:00:00", "+2024-02-09")
    )
    one = (
        source({**XML, "rescuedDataColumn": "_r"}, t.StructType([t.StructField("d", t.DateType())])).put("a.xml", f"<rs>{rows}</rs>").run()
    )
    assert [row["d"] for row in one.batches[0]] == [date(2024, 2, 9), date(2024, 2, 9), None, None, None, None]
    texts = [rescued(row["_r"]) for row in one.batches[0][2:]]
    assert texts == [{"d": text} for text in ("2024-2-9", "2024", "2024-02-09T10:00:00", "+2024-02-09")]


@pytest.mark.parametrize(
    ("elements", "kind", "values"),
    [
        (["<v>1</v>", "<v><k>1</k></v>"], "string", ["1", "<k>1</k>"]),
        (["<v><k>1</k></v>", "<v>x</v>"], "string", ["<k>1</k>", "x"]),
        (["<v/>", "<v><k>x</k></v>"], "struct<k:string>", [{"k": None}, {"k": "x"}]),
        (["<v>x</v><v><k>1</k></v>"], "array<string>", [["x", "<k>1</k>"]]),
        (["<v>5</v>", "<v><k>1</k></v><v>6</v>"], "array<string>", [["5"], ["<k>1</k>", "6"]]),
        (["<v><p>1</p></v>", "<v><p><q>1</q></p></v>"], "struct<p:string>", [{"p": "1"}, {"p": "<q>1</q>"}]),
        (["<v>5</v>", "<v>m<k>1</k></v>"], "struct<_VALUE:string,k:bigint>", [{"_VALUE": "5", "k": None}, {"_VALUE": "m", "k": 1}]),
        (['<v x="1">t</v>', "<v>5</v>"], "struct<_VALUE:string,_x:bigint>", [{"_VALUE": "t", "_x": 1}, {"_VALUE": "5", "_x": None}]),
    ],
)
def test_FF45_a_text_beside_an_element_with_children_only_is_a_text(
    source: Make, elements: list[str], kind: str, values: list[Any]
) -> None:
    one = source(TYPED).put("a.xml", "<rs>" + "".join(f"<r>{element}</r>" for element in elements) + "</rs>").run()
    assert one.types()["v"] == kind
    assert [row["v"] for row in one.batches[0]] == values


def test_FF46_comments_and_instructions_do_not_part_a_text(source: Make) -> None:
    kinds = "struct<_VALUE:string,_x:bigint>"
    one = source(TYPED).put("a.xml", '<rs><r><v x="1">a<!-- no -->b<?pi?>c</v><n>1<!-- no -->2</n></r></rs>').run()
    assert (one.types()["v"], one.types()["n"]) == (kinds, "bigint")
    assert (one.last()["v"], one.last()["n"]) == ({"_VALUE": "abc", "_x": 1}, 12)


def test_hints_make_maps_arrays_and_variants(source: Make) -> None:
    one = source({**TYPED, "cloudFiles.schemaHints": "m.value INT, l ARRAY<STRING>, v VARIANT"})
    one.put("a.xml", "<r><m><a>1</a><b>2</b></m><l>1</l><v><x>1</x></v></r>").run()
    row = one.last()
    assert (row["m"], row["l"], row["v"]) == ({"a": 1, "b": 2}, ["1"], '{"x":"1"}')


@pytest.mark.parametrize("codec", ["ISO-8859-1", "UTF-16"])
def test_the_encoding_is_that_of_the_option_or_of_the_file_itself(source: Make, codec: str) -> None:
    text = f"<?xml version='1.0' encoding='{codec}'?><rs><r><n>é</n></r></rs>"
    assert source(XML).put("a.xml", text.encode(codec)).run().rows("n") == ["é"]
    assert source({**XML, "encoding": codec}).put("a.xml", "<rs><r><n>é</n></r></rs>".encode(codec)).run().rows("n") == ["é"]
    source(XML).put("a.xml", "<?xml version='1.0' encoding='klingon'?><r/>").fails("FAILED_READ_FILE")


def test_a_sample_may_be_a_part_of_the_rows(source: Make) -> None:
    text = "<rs>" + "".join(f"<r><c{n}>1</c{n}></r>" for n in range(10)) + "</rs>"
    assert len(source({**XML, "samplingRatio": "0.2"}).put("a.xml", text).types()) < 5
    assert len(source(XML).put("a.xml", text).types()) == 11


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"rowTag": ""}, "CF_INCONSISTENT_OPTIONS"),
        ({"rowTag": "<r>"}, "CF_INCONSISTENT_OPTIONS"),
        ({"rowTag": "r", "rowValidationXSDPath": "a.xsd"}, "NOT_SUPPORTED_YET"),
        ({"rowTag": "r", "singleVariantColumn": "v"}, "NOT_SUPPORTED_YET"),
        ({"rowTag": "r", "samplingRatio": "2"}, "CF_INVALID_OPTION_VALUE"),
        ({"rowTag": "r", "encoding": "klingon"}, "CF_INVALID_OPTION_VALUE"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(source: Make, options: dict[str, str], code: str) -> None:
    with pytest.raises(LakeletError) as caught:
        source({"cloudFiles.format": "xml", **options}).put("a.xml", "<r/>").open()
    assert caught.value.code == code
