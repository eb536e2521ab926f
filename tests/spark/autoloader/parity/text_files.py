"""The kinds of text files that are read: well-formed ones, and records that are broken in one way, between records that are not."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

Line = str | bytes
"""Bytes stand in the file as they are, whatever its charset."""


def text_file(lines: tuple[Line, ...], charset: str, ends: str) -> bytes:
    """The file of these lines; what a charset does not have becomes a question mark. Of UTF-16 and UTF-32 it begins with the mark."""
    marked = charset in ("utf-16", "utf-32") or charset.endswith("-bom")
    plain = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(charset, charset.removesuffix("-bom"))
    mark = "\ufeff".encode(plain) if marked else b""
    end = ends.encode(plain)
    return mark + b"".join((line if isinstance(line, bytes) else line.encode(plain, "replace")) + end for line in lines)


JSON: Mapping[str, tuple[Line, ...]] = {
    # --- records as they should be ---
    "plain": ('{"id":1,"s":"a","d":1.5,"b":true}', '{"id":2,"s":"b","d":-2.5e3,"b":false}', '{"id":3}'),
    "words": ('{"id":1,"s":"crème brûlée"}', '{"id":2,"s":"Łódź – ñandú"}', '{"id":3,"s":"\\u00e9 \\ud83d\\ude00 \\"q\\" \\/"}'),
    "nested": (
        '{"id":1,"o":{"k":1,"s":"x"},"a":[1,2],"m":{"p":1}}',
        '{"id":2,"o":{"k":2},"a":[],"m":{}}',
        '{"id":3,"o":{"s":"y", "k" : 3 }, "a": [ 4 ] }',
    ),
    "numbers": (
        '{"id":2147483648,"d":1e3,"n":12.34}',
        '{"id":-1,"d":0.1,"n":100}',
        '{"id":9223372036854775807,"d":123456789012345678901234567890,"n":0.005}',
    ),
    "days": (
        '{"id":1,"day":"2024-02-29"}',
        '{"id":2,"day":"2024-2-9"}',
        '{"id":3,"day":"2023-02-29"}',
        '{"id":4,"day":"29/02/2024"}',
        '{"id":5,"day":"1500-01-01"}',
    ),
    "moments": (
        '{"id":1,"t":"2024-07-01T12:00:00Z"}',
        '{"id":2,"t":"2024-07-01 12:00:00"}',
        '{"id":3,"t":"2024-03-10T02:30:00"}',
        '{"id":4,"t":"2024-07-01T12:00:00.123456+05:30"}',
        '{"id":5,"t":"2024-07-01"}',
        '{"id":6,"t":"01/07/2024 12:00"}',
        '{"id":7,"t":"1883-11-18 12:00:00"}',
    ),
    "only-moments": ('{"id":1,"t":"2024-07-01T12:00:00"}', '{"id":2,"t":"2024-11-03T01:30:00"}'),
    "epochs": ('{"id":1,"t":1720000000,"day":19000}', '{"id":3,"t":1.5,"day":1.5}'),
    "epochs-in-quotes": ('{"id":2,"t":"1720000000","day":"19000"}',),
    "time-of-day": ('{"id":1,"t":"12:30","day":"12:30"}',),
    "no-time-of-day": ('{"id":1,"t":"no 12:30","day":"no 12:30"}',),
    "nulls": ('{"id":null,"s":null,"a":[null],"o":null,"m":{"x":null}}', '{"id":1,"s":"","d":null}'),
    "all-null": ('{"id":1,"z":null,"y":[],"x":{}}', '{"id":2,"z":null}'),
    "decimals": ('{"id":1,"n":1.005}', '{"id":2,"n":"12.5"}', '{"id":3,"n":123456789.5}', '{"id":4,"n":1e2}'),
    "texts-of-types": ('{"id":"1","d":"1.5","b":"true","n":"2"}', '{"id":" 1","d":"","b":"TRUE","n":" 3 "}'),
    "spelling": ('{"ID":1,"S":"x"}', '{"id":2,"s":"y"}'),
    "more-fields": ('{"id":1,"extra":{"e":1},"other":"o"}', '{"id":2}'),
    "mixed-types": ('{"id":1,"v":1,"w":"x"}', '{"id":2,"v":1.5,"w":3}', '{"id":3,"v":"t","w":{"q":1}}', '{"id":4,"v":[1],"w":true}'),
    "space-around": ('  {"id":1}  ', '\t{"id" : 2 , "s" : "x y" }\t'),
    "empty-lines": ('{"id":1}', "", "   ", '{"id":2}', ""),
    # --- records that are not ---
    "truncated": ('{"id":1,"s":"a"}', '{"id":2,"s":', '{"id":3,"s":"c"}'),
    "unclosed-text": ('{"id":1}', '{"id":2,"s":"open}', '{"id":3}'),
    "garbage": ('{"id":1}', "broken", '{"id":3}', "<x/>"),
    "text-behind": ('{"id":1} xyz', '{"id":2},', '{"id":3};', '{"id":4}'),
    "two-values": ('{"id":1}{"id":2}', '{"id":3} {"id":4}', '{"id":5}'),
    "scalars": ('{"id":1}', "5", '"text"', "null", "true", '{"id":2}'),
    "arrays": ('[{"id":1},{"id":2}]', "[]", '{"id":3}', "[4]"),
    "empty-object": ("{}", '{"id":1}', '{"o":{}}'),
    "wrong-types": (
        '{"id":"x","s":"a"}',
        '{"id":1.5,"d":"y"}',
        '{"id":true,"b":1,"s":5}',
        '{"id":[1],"s":{"k":1}}',
        '{"id":5,"n":"abc","day":true}',
    ),
    "wrong-nested": (
        '{"id":1,"o":{"k":"x","s":1}}',
        '{"id":4,"o":[1],"a":{"k":1}}',
        '{"id":5,"o":"s","a":5}',
    ),
    "wrong-elements": ('{"id":2,"a":[1,"x",3]}', '{"id":3,"m":{"p":"q","r":2}}'),
    "null-elements": ('{"id":2,"a":[1,null,3]}', '{"id":3,"m":{"p":null,"r":2}}'),
    "repeated-key": ('{"id":1,"id":2,"s":"a"}', '{"id":3,"s":"a","s":"b"}', '{"id":4,"o":{"k":1,"k":2}}'),
    "last-of-a-key": ('{"id":2,"s":"a"}', '{"id":3,"s":"b"}', '{"id":4,"o":{"k":2}}'),
    "trailing-comma": ('{"id":1,}', '{"id":2,"a":[1,]}', '{"id":3}'),
    "huge": ('{"id":1,"d":1e400}', '{"id":2,"d":-1e400}', '{"id":99999999999999999999,"d":1}', '{"id":3,"d":1e-400}'),
    "not-numbers": (
        '{"id":1,"d":NaN}',
        '{"id":2,"d":-Infinity}',
        '{"id":3,"d":"NaN"}',
        '{"id":5,"d":+1}',
        '{"id":6,"d":.5}',
        '{"id":7,"d":5.}',
    ),
    "bare-infinity": ('{"id":4,"d":INF}', '{"id":5}'),
    "leading-zeros": ('{"id":007}', '{"id":1,"d":00.5}', '{"id":-01}'),
    "single-quotes": ("{'id':1,'s':'a'}", '{"id":2,"s":\'it\\\'s\'}'),
    "bare-names": ('{id:1,s:"a"}', '{"id":2}', "{ id : 3 }"),
    "comments": ('{"id":1 /* c */,"s":"a"}', '{"id":2} // c', "// c", '{"id":3}'),
    "control-characters": ('{"id":1,"s":"a\tb"}', '{"id":2,"s":"a\x01b"}', '{"id":3}'),
    "odd-escapes": ('{"id":1,"s":"a\\db"}', '{"id":4}'),
    "odd-commas": ('{"id":1,"s":"ab",,}', '{"id":4}'),
    "half-escapes": ('{"id":2,"s":"\\u12"}', '{"id":3,"s":"\\ud800"}', '{"id":4}'),
    "half-commas": ('{"id":2,"s":"",,}', '{"id":3,"s":"\\ud800"}', '{"id":4}'),
    "bad-bytes": ('{"id":1,"s":"a"}', b'{"id":2,"s":"a\xe9b"}', b'{"id":3,"s":"\xff\xfe"}', '{"id":4,"s":"b"}'),
    "null-bytes": ('{"id":1}', '{"id":2,"s":"a\x00b"}', "\x00\x00", '{"id":3}'),
    "document": ("[", '  {"id":1,', '   "s":"a"},', '  {"id":2}', "]"),
    "broken-document": ("[", '  {"id":1,"s":"a"},', '  {"id":2', "]"),
    "one-object": ("{", '  "id": 1,', '  "s": "a",', '  "a": [1,', " 2]", "}"),
    "deep": ('{"id":1,"v":' + "[" * 60 + "]" * 60 + "}",),
}

CSV: Mapping[str, tuple[Line, ...]] = {
    "plain": ("id,s,d", "1,a,1.5", "2,b,-2.5e3", "3,c,"),
    "surplus-empty": ("id,s,d", "1,a,1.5", "3,,"),
    "words": ("id,s,d", "1,crème brûlée,1", "2,Łódź – ñandú,2", "3,😀,3"),
    "numbers": ("id,s,d", "1,1e3,12.34", "-2,0.1,100", "3,123456789012345678901,0.005"),
    "long-numbers": ("id,s,d", "3000000000,1.5,1", "12345678901234567890,2,1d", "+5,1d,1f"),
    "days": ("id,day,n", "1,2024-02-29,1", "2,2024-2-9,2", "3,2023-02-29,3", "4,29/02/2024,4", "5,1500-01-01,5"),
    "only-days": ("id,day", "1,2024-02-29", "2,2023-12-31"),
    "moments": (
        "id,t",
        "1,2024-07-01T12:00:00Z",
        "2,2024-07-01 12:00:00",
        "3,2024-03-10T02:30:00",
        "4,2024-07-01T12:00:00.123456+05:30",
        "5,2024-07-01",
        "6,01/07/2024 12:00",
    ),
    "only-moments": ("id,t", "1,2024-07-01T12:00:00", "2,2024-11-03 01:30:00"),
    "days-and-moments": ("id,t", "1,2024-07-01", "2,2024-07-01 12:00:00"),
    "time-of-day": ("id,t", "1,12:30", "2,23:59:59"),
    "no-time-of-day": ("id,t", "1,no 12:30", "2,no 23:59:59"),
    "booleans": ("id,day,b", "1,2024-01-01,TRUE", "2,2024-01-02,False", "3,2024-01-03,t"),
    "empty": ("id,s,d", "1,,", '2,"",', "3, ,1", ',"" ,'),
    "null-words": ("id,s,d", "1,NULL,NA", "NA,-,1.5", "3,null,"),
    "specials": ("id,s,d", "1,a,NaN", "2,b,Inf", "3,c,-Inf", "4,d,Infinity", "5,e,1e400", "6,f,nan"),
    "decimals": ("id,day,n", "1,2024-01-01,1.005", '2,2024-01-02,"1,234.5"', "3,2024-01-03,123456789.5", "4,2024-01-04,1e2"),
    "spaces": ("id, s ,d", " 1 , a , 1.5 ", '2," b ",2', "3\t,\tc,3"),
    "quotes": ("id,s,d", '1,"a,b",1', '2,"a""b",2', '3,"a\\"b",3', '4,"",4', '5,"a\\\\",5'),
    "single-quotes": ("id,s,d", "1,'a,b',1", "2,'it''s',2"),
    "semicolons": ("id;s;d", "1;a;1,5", "2;b;2"),
    "tabs": ("id\ts\td", "1\ta\t1.5", "2\tb\t2"),
    "comments": ("id,s,d", "1,a,1", "# note", "2,#b,2", " # 3,c,3"),
    "line-in-quotes": ("id,s,d", '1,"a', 'b",1', "2,c,2"),
    "header-only": ("id,s",),
    "only-separators": ("id,s,d", ",,", "1,a,1"),
    "too-few": ("id,s,d", "1,a,1", "2,b", "3", "4,d,4"),
    "too-many": ("id,s,d", "1,a,1", "2,b,2,x,y", "3,c,3"),
    "wrong-types": ("id,s,d", "x,a,1", "2,b,y", "1.5,c,1", "4,d,4"),
    "empty-lines": ("id,s,d", "1,a,1", "", "2,b,2", ""),
    "lines-of-blanks": ("id,s,d", "1,a,1", "   ", "2,b,2"),
    "unclosed-quote": ("id,s,d", "1,a,1", '2,"b,2', "3,c,3"),
    "quote-inside": ("id,s,d", '1,a"b,1', '2,"a"b,2', '3,a"b"c,3', '4, "x",4'),
    "text-behind-quote": ("id,s,d", '1,"a" x,1', '2,"b"y"z",2', '3,"c" ,3'),
    "odd-escapes": ("id,s,d", "1,a\\,b,1", '2,"a\\nb",2', '3,"a\\",3'),
    "bad-bytes": ("id,s,d", "1,a,1", b"2,a\xe9b,2", b"3,\xff\xfe,3", "4,b,4"),
    "null-bytes": ("id,s,d", "1,a\x00b,1", "2,b,2"),
    "repeated-header": ("id,s,s", "1,a,b", "2,c,d"),
    "odd-header": ("id,,a b,ID", "1,x,y,z", "2,u,v,w"),
    "no-header": ("1,a,1.5", "2,b,2.5"),
}


def _xml(*inner: str) -> tuple[Line, ...]:
    return ("<rows>", *inner, "</rows>")


XML: Mapping[str, tuple[Line, ...]] = {
    "plain": _xml("<row><id>1</id><s>a</s><d>1.5</d><b>true</b></row>", "<row><id>2</id><s>b</s></row>", "<row/>"),
    "words": _xml("<row><id>1</id><s>crème brûlée</s></row>", "<row><id>2</id><s>Łódź – ñandú &amp; &#233;</s></row>"),
    "declared": ('<?xml version="1.0" encoding="UTF-8"?>', *_xml("<row><id>1</id><s>é</s></row>")),
    "attributes": _xml('<row id="1"><s x="p">a</s></row>', '<row id="2" z="9"><s>b</s></row>', '<row id="3"><s x="q"/></row>'),
    "nested": _xml("<row><id>1</id><o><k>1</k><s>x</s></o></row>", "<row><id>2</id><o><k>2</k></o></row>", "<row><id>3</id><o/></row>"),
    "repeated": _xml("<row><id>1</id><a>1</a><a>2</a></row>", "<row><id>2</id><a>3</a></row>"),
    "repeated-objects": _xml("<row><id>1</id><l><k>1</k></l><l><k>2</k></l></row>", "<row><id>2</id></row>"),
    "mixed-content": _xml("<row><id>1</id>free <s>a</s> text</row>", "<row>only</row>"),
    "numbers": _xml(
        "<row><d>1e3</d><id>2147483648</id></row>", "<row><d>0.1</d><id>12345678901234567890</id></row>", "<row><id>+7</id></row>"
    ),
    "letters-behind-numbers": _xml("<row><id>7</id><d>1d</d></row>"),
    "days": _xml(
        "<row><id>1</id><day>2024-02-29</day></row>",
        "<row><id>3</id><day>29/02/2024</day></row>",
    ),
    "short-days": _xml("<row><id>2</id><day>2024-2-9</day></row>"),
    "moments": _xml(
        "<row><id>1</id><t>2024-07-01T12:00:00Z</t></row>",
        "<row><id>2</id><t>2024-07-01 12:00:00</t></row>",
        "<row><id>3</id><t>2024-03-10T02:30:00</t></row>",
        "<row><id>4</id><t>2024-07-01</t></row>",
        "<row><id>5</id><t>01/07/2024 12:00</t></row>",
    ),
    "only-moments": _xml("<row><id>1</id><t>2024-07-01T12:00:00</t></row>", "<row><id>2</id><t>2024-11-03T01:30:00</t></row>"),
    "booleans": _xml("<row><id>1</id><b>TRUE</b></row>", "<row><id>2</id><b>0</b></row>", "<row><id>3</id><b>false</b></row>"),
    "spaces": _xml("<row><s> a  b </s><id> 1 </id></row>", "<row><s>   </s><id>\t2</id></row>"),
    "empty-elements": _xml("<row><id></id><s></s></row>", "<row><id/><s/></row>", "<row><id>3</id><s>null</s></row>"),
    "cdata": _xml("<row><id>1</id><s><![CDATA[<b>&]]></s></row>", "<row><id>2</id><s>a<![CDATA[b]]>c</s></row>"),
    "comments": _xml(
        "<!-- <row><id>0</id></row> -->", "<row><id>1</id><!-- c --><s>a<!-- d -->b</s></row>", "<?pi x?>", "<row><id>2</id></row>"
    ),
    "namespaces": ('<rows xmlns:p="urn:p">', "<p:row><p:id>1</p:id></p:row>", '<row><p:id>2</p:id><s p:x="1">b</s></row>', "</rows>"),
    "nested-rows": _xml("<row><id>1</id><row><id>2</id></row></row>", "<row><id>3</id></row>"),
    "similar-names": _xml("<rowx><id>0</id></rowx>", "<row><id>1</id></row>", "<row ><id>2</id></row >"),
    "one-line": ("<rows><row><id>1</id></row><row><id>2</id></row></rows>",),
    "more-fields": _xml("<row><id>1</id><extra><e>1</e></extra></row>", "<row><id>2</id></row>"),
    "wrong-types": _xml(
        "<row><s>a</s><id>x</id></row>",
        "<row><id>2</id><s>b</s><d>y</d></row>",
        "<row><b>maybe</b></row>",
        "<row><id>4</id></row>",
    ),
    "wrong-nested": _xml(
        "<row><id>1</id><o><k>x</k></o></row>",
        "<row><id>2</id><o>text</o></row>",
        "<row><id>3</id><a>x</a><a>1</a></row>",
        "<row><id><k>1</k></id></row>",
    ),
    "truncated": ("<rows>", "<row><id>1</id></row>", "<row><id>2</id><s>b"),
    "unclosed": _xml("<row><id>1</id></row>", "<row><id>2</id><s>b</row>", "<row><id>3</id></row>"),
    "crossed": _xml("<row><id>1</id></row>", "<row><id>2</s></id></row>", "<row><id>3</id></row>"),
    "bare-ampersand": _xml("<row><id>1</id><s>a & b</s></row>", "<row><id>2</id></row>"),
    "unknown-entity": _xml("<row><id>1</id><s>&nbsp;</s></row>", "<row><id>2</id></row>"),
    "bare-attribute": _xml("<row id=1><s>a</s></row>", '<row id="2"><s>b</s></row>'),
    "repeated-attribute": _xml('<row id="1" id="2"><s>a</s></row>', '<row id="3"><s>b</s></row>'),
    "garbage-between": _xml("<row><id>1</id></row>", "garbage < > &", "<row><id>2</id></row>"),
    "garbage": ("not xml at all", "{}"),
    "odd-characters": _xml("<row><id>1</id><s>a\x01b</s></row>", "<row><id>2</id><s>&#1;</s></row>", "<row><id>3</id></row>"),
    "bad-bytes": ("<rows>", "<row><id>1</id></row>", b"<row><id>2</id><s>a\xe9b</s></row>", "<row><id>3</id></row>", "</rows>"),
    "empty-nested": _xml(
        "<row><id>1</id><o><k/></o></row>",
        "<row><id>2</id><o>text</o></row>",
        "<row><id>3</id><a/><a>1</a></row>",
        "<row><id/></row>",
    ),
    "spelling": _xml('<row ID="2"><ID>1</ID><S>x</S></row>'),
    "misfit-first": _xml("<row><id>x</id><s>a</s></row>", "<row><d>y</d><s>b</s><id>2</id></row>"),
    "misfit-last": _xml("<row><s>a</s><id>x</id></row>", "<row><s>b</s><id>2</id><d>y</d></row>"),
}
"""Before 4.2 and since, Spark's reader loses the values of a record behind one that does not fit, so such a value is the last one."""

TEXT: Mapping[str, tuple[Line, ...]] = {
    "plain": ("one", "two", "three"),
    "words": ("crème brûlée", "Łódź – ñandú", "😀"),
    "empty-lines": ("", "a", "", "  ", ""),
    "tabs": ("a\tb", " c "),
    "separators": ("a|b", "c||d"),
    "bad-bytes": ("a", b"b\xe9c\nd\xff", "e"),
    "null-bytes": ("a\x00b", "c"),
    "odd-line-ends": ("a\x85b", "c\u2028d", "e\x0bf\x0cg", "h\ri"),
}


def xml_is_broken(kind: str) -> bool:
    """Whether a file with records is not well-formed, but for bytes of another encoding."""
    text = "".join(line for line in XML[kind] if isinstance(line, str))
    try:
        ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return "<row" in text
    return False
