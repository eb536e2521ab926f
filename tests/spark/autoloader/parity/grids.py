"""The dimensions of each format: what is chosen in a reading."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.spark.autoloader.parity.combinations import Grid, Part

_ANSI, _ZONE, _TYPE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.timestampType"
_CORRUPT = "_corrupt_record STRING"
_RESCUE = {"rescuedDataColumn": "_rescued"}
_INFER = {"cloudFiles.inferColumnTypes": "true"}
_INFERRED = {
    "inferred": Part(loader={**_INFER, "cloudFiles.schemaEvolutionMode": "none"}),
    "inferred-with-rescue": Part(loader=_INFER),
    "texts": Part(loader={"cloudFiles.schemaEvolutionMode": "none"}),
}

SETTINGS: Grid = {
    "session zone": {
        "": Part(),
        "session-zone=New_York": Part(settings={_ZONE: "America/New_York"}),
        "session-zone=Kolkata": Part(settings={_ZONE: "Asia/Kolkata"}),
    },
    "timestamp type": {"": Part(), "ntz": Part(settings={_TYPE: "TIMESTAMP_NTZ"})},
    "ansi": {"": Part(), "ansi=false": Part(settings={_ANSI: "false"})},
}

_ZONE_OPTION = {"": Part(), "zone=Tokyo": Part(options={"timeZone": "Asia/Tokyo"})}

_MODES = {
    "": Part(),
    "corrupt-column": Part(more=_CORRUPT),
    "corrupt-column-renamed": Part(options={"columnNameOfCorruptRecord": "_bad"}, more="_bad STRING"),
    "corrupt-column-by-setting": Part(settings={"spark.sql.columnNameOfCorruptRecord": "_broken"}, more="_broken STRING"),
    "drop": Part(options={"mode": "DROPMALFORMED"}),
    "fail": Part(options={"mode": "FAILFAST"}),
}
_RESCUES = {
    "rescue": Part(loader=_RESCUE),
    "rescue-drop": Part(options={"mode": "DROPMALFORMED"}, loader=_RESCUE),
    "rescue-fail": Part(options={"mode": "FAILFAST"}, loader=_RESCUE),
    "rescue-and-corrupt-column": Part(loader=_RESCUE, more=_CORRUPT),
}

_CHARSETS = {
    "": Part(),
    "utf-8": Part(options={"encoding": "UTF-8"}),
    "bom": Part(charset="utf-8-bom"),
    "utf-16le": Part(charset="utf-16-le", options={"encoding": "UTF-16LE"}),
    "utf-16be": Part(charset="utf-16-be", options={"encoding": "UTF-16BE"}),
    "utf-16": Part(charset="utf-16", options={"encoding": "UTF-16"}),
    "utf-32": Part(charset="utf-32", options={"encoding": "UTF-32"}),
    "latin-1": Part(charset="latin-1", options={"encoding": "ISO-8859-1"}),
    "ascii": Part(charset="ascii", options={"encoding": "US-ASCII"}),
    "windows-1252": Part(charset="cp1252", options={"charset": "windows-1252"}),
    "undeclared-latin-1": Part(charset="latin-1"),
    "undeclared-utf-16": Part(charset="utf-16"),
    "utf-8-as-latin-1": Part(options={"encoding": "latin1"}),
}
_ENDS = {
    "": Part(),
    "crlf": Part(ends="\r\n"),
    "cr": Part(ends="\r"),
    "lf-declared": Part(options={"lineSep": "\n"}),
    "crlf-declared": Part(ends="\r\n", options={"lineSep": "\r\n"}),
    "cr-declared": Part(ends="\r", options={"lineSep": "\r"}),
}
_COLUMNS = "id BIGINT, d DOUBLE, s STRING, t TIMESTAMP_LTZ, day DATE, b BOOLEAN, n DECIMAL(10,2)"
_OTHER_COLUMNS = "id INT, d FLOAT, s STRING, t TIMESTAMP_NTZ, day TIMESTAMP_LTZ, b STRING, n DECIMAL(5,1)"
_ALLOW = [
    "allowComments",
    "allowUnquotedFieldNames",
    "allowNumericLeadingZeros",
    "allowBackslashEscapingAnyCharacter",
    "allowUnquotedControlChars",
]

JSON: Grid = {
    "schema": {
        "": Part(schema=_COLUMNS + ", a ARRAY<BIGINT>, o STRUCT<k: BIGINT, s: STRING>, m MAP<STRING, BIGINT>"),
        "other-types": Part(schema=_OTHER_COLUMNS + ", a ARRAY<STRING>, o STRING, m STRUCT<p: INT>, v STRING"),
        "session-types": Part(
            schema="id SMALLINT, d DECIMAL(20,3), s STRING, t TIMESTAMP, day STRING, b TINYINT, a STRING, o MAP<STRING, STRING>"
        ),
        "bytes": Part(schema="id BIGINT, s BINARY"),
        "string-columns": Part(
            schema="id STRING, d STRING, s STRING, t STRING, day STRING, b STRING, n STRING, a STRING, o STRING, m STRING"
        ),
    },
    "mode": {**_MODES, **_RESCUES},
    "charset": _CHARSETS,
    "ends": _ENDS,
    "multi-line": {"": Part(), "multiLine": Part(options={"multiLine": "true"})},
    "zone option": _ZONE_OPTION,
    "parsing": {
        "": Part(),
        "dateFormat": Part(options={"dateFormat": "dd/MM/yyyy"}),
        "timestampFormat": Part(options={"timestampFormat": "dd/MM/yyyy HH:mm", "timestampNTZFormat": "dd/MM/yyyy HH:mm"}),
        "allow-all": Part(options=dict.fromkeys(_ALLOW, "true")),
        "allow-nothing": Part(options={"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}),
        "locale": Part(options={"locale": "en-US", "dateFormat": "d. MMMM yyyy"}),
    },
    **SETTINGS,
}
JSON_INFERRED: Grid = {
    "schema": _INFERRED,
    "mode": {
        "": Part(),
        "corrupt-column": Part(more=_CORRUPT),
        "drop": Part(options={"mode": "DROPMALFORMED"}),
        "fail": Part(options={"mode": "FAILFAST"}),
    },
    "charset": {name: _CHARSETS[name] for name in ("", "bom", "utf-16le", "latin-1", "undeclared-latin-1")},
    "ends": {name: _ENDS[name] for name in ("", "crlf", "cr", "crlf-declared")},
    "multi-line": {"": Part(), "multiLine": Part(options={"multiLine": "true"})},
    "zone option": _ZONE_OPTION,
    "parsing": {
        "": Part(),
        "inferTimestamp": Part(options={"inferTimestamp": "true"}),
        "infer-by-format": Part(options={"inferTimestamp": "true", "timestampFormat": "dd/MM/yyyy HH:mm"}),
        "prefersDecimal": Part(options={"prefersDecimal": "true"}),
        "primitivesAsString": Part(options={"primitivesAsString": "true"}),
        "dropFieldIfAllNull": Part(options={"dropFieldIfAllNull": "true"}),
        "allow-all": Part(options=dict.fromkeys(_ALLOW, "true")),
        "allow-nothing": Part(options={"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}),
    },
    **SETTINGS,
}

_CSV_PARSING = {
    "": Part(),
    "dateFormat": Part(options={"dateFormat": "dd/MM/yyyy"}),
    "timestampFormat": Part(options={"timestampFormat": "dd/MM/yyyy HH:mm", "timestampNTZFormat": "dd/MM/yyyy HH:mm"}),
    "semicolon": Part(options={"sep": ";"}),
    "tab": Part(options={"delimiter": "\t"}),
    "two-characters": Part(options={"sep": "||"}),
    "single-quote": Part(options={"quote": "'"}),
    "no-quote": Part(options={"quote": ""}),
    "escape-by-quote": Part(options={"escape": '"'}),
    "escape-of-escape": Part(options={"charToEscapeQuoteEscaping": "\\"}),
    "comment": Part(options={"comment": "#"}),
    "nullValue": Part(options={"nullValue": "NA"}),
    "emptyValue": Part(options={"emptyValue": "EMPTY", "nullValue": "-"}),
    "trim": Part(options={"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}),
    "trim-left": Part(options={"ignoreLeadingWhiteSpace": "true"}),
    "numbers": Part(options={"nanValue": "nan", "positiveInf": "Infinity", "negativeInf": "-"}),
    "locale": Part(options={"locale": "de-DE"}),
    "stop-at-closing-quote": Part(options={"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"}),
    "back-to-delimiter": Part(options={"unescapedQuoteHandling": "BACK_TO_DELIMITER"}),
    "skip-value": Part(options={"unescapedQuoteHandling": "SKIP_VALUE"}),
}
CSV: Grid = {
    "schema": {
        "": Part(schema="id BIGINT, s STRING, d DOUBLE"),
        "moments": Part(schema="id BIGINT, t TIMESTAMP_LTZ"),
        "moments-without-zone": Part(schema="id INT, t TIMESTAMP_NTZ"),
        "moments-of-session": Part(schema="id STRING, t TIMESTAMP"),
        "days": Part(schema="id BIGINT, day DATE, n DECIMAL(10,2)"),
        "booleans": Part(schema="id INT, day DATE, b BOOLEAN"),
        "other-types": Part(schema="id SMALLINT, s DECIMAL(5,1), d FLOAT"),
        "string-columns": Part(schema="id STRING, s STRING, d STRING"),
    },
    "mode": {**_MODES, **_RESCUES},
    "header": {"": Part(options={"header": "true"}), "no-header": Part(options={"header": "false"}), "header-unset": Part()},
    "charset": _CHARSETS,
    "ends": {name: _ENDS[name] for name in ("", "crlf", "cr", "lf-declared", "cr-declared")},
    "multi-line": {"": Part(), "multiLine": Part(options={"multiLine": "true"})},
    "zone option": _ZONE_OPTION,
    "parsing": _CSV_PARSING,
    **SETTINGS,
}
CSV_INFERRED: Grid = {
    "schema": {name: Part(options={"inferSchema": str(name != "texts").lower()}, loader=part.loader) for name, part in _INFERRED.items()},
    "mode": JSON_INFERRED["mode"],
    "header": CSV["header"],
    "charset": JSON_INFERRED["charset"],
    "ends": {name: _ENDS[name] for name in ("", "crlf", "cr", "cr-declared")},
    "multi-line": CSV["multi-line"],
    "zone option": _ZONE_OPTION,
    "parsing": {**_CSV_PARSING, "preferDate=false": Part(options={"preferDate": "false"})},
    **SETTINGS,
}

_XML_COLUMNS = "a ARRAY<BIGINT>, o STRUCT<k: BIGINT, s: STRING>"
_ROW = {"rowTag": "row"}
_XML_PARSING = {
    "": Part(options=_ROW),
    "attributePrefix": Part(options={**_ROW, "attributePrefix": "at_"}),
    "no-prefix": Part(options={**_ROW, "attributePrefix": ""}),
    "valueTag": Part(options={**_ROW, "valueTag": "value"}),
    "excludeAttribute": Part(options={**_ROW, "excludeAttribute": "true"}),
    "ignoreNamespace": Part(options={**_ROW, "ignoreNamespace": "true"}),
    "keep-spaces": Part(options={**_ROW, "ignoreSurroundingSpaces": "false"}),
    "nullValue": Part(options={**_ROW, "nullValue": "null"}),
    "nullValue-empty": Part(options={**_ROW, "nullValue": ""}),
    "dateFormat": Part(options={**_ROW, "dateFormat": "dd/MM/yyyy"}),
    "timestampFormat": Part(options={**_ROW, "timestampFormat": "dd/MM/yyyy HH:mm", "timestampNTZFormat": "dd/MM/yyyy HH:mm"}),
    "locale": Part(options={**_ROW, "locale": "de-DE"}),
    "other-row-tag": Part(options={"rowTag": "rowx"}),
    "no-row-tag": Part(),
}
XML: Grid = {
    "schema": {
        "": Part(schema=f"_id BIGINT, {_COLUMNS}, {_XML_COLUMNS}"),
        "other-types": Part(schema=f"{_OTHER_COLUMNS}, a ARRAY<STRING>, o STRING, l ARRAY<STRUCT<k: INT>>"),
        "string-columns": Part(
            schema="_id STRING, id STRING, s STRING, d STRING, t STRING, day STRING, b STRING, a ARRAY<STRING>, o STRING, _VALUE STRING"
        ),
        "with-attributes": Part(schema="id BIGINT, s STRUCT<_VALUE: STRING, _x: STRING>, `p:id` INT, t TIMESTAMP"),
    },
    "mode": {**_MODES, **_RESCUES},
    "charset": {name: part for name, part in _CHARSETS.items() if name != "utf-32"},
    "ends": {name: _ENDS[name] for name in ("", "crlf", "cr")},
    "zone option": _ZONE_OPTION,
    "parsing": _XML_PARSING,
    **SETTINGS,
}
XML_INFERRED: Grid = {
    "schema": {
        "inferred": _INFERRED["inferred"],
        "inferred-with-rescue": _INFERRED["inferred-with-rescue"],
        "texts": Part(options={"inferSchema": "false"}, loader=_INFERRED["texts"].loader),
    },
    "mode": JSON_INFERRED["mode"],
    "charset": JSON_INFERRED["charset"],
    "ends": XML["ends"],
    "zone option": _ZONE_OPTION,
    "parsing": {**_XML_PARSING, "prefersDecimal": Part(options={**_ROW, "prefersDecimal": "true"})},
    **SETTINGS,
}

_REBASE = {
    "": Part(),
    "rebase=LEGACY": Part(options={"datetimeRebaseMode": "LEGACY", "int96RebaseMode": "LEGACY"}),
    "rebase=CORRECTED": Part(options={"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}),
    "rebase=EXCEPTION": Part(options={"datetimeRebaseMode": "EXCEPTION", "int96RebaseMode": "EXCEPTION"}),
    "rebase-setting=CORRECTED": Part(settings={f"spark.sql.parquet.{what}RebaseModeInRead": "CORRECTED" for what in ("datetime", "int96")}),
    "rebase-setting=LEGACY": Part(settings={f"spark.sql.parquet.{what}RebaseModeInRead": "LEGACY" for what in ("datetime", "int96")}),
}
_DAMAGE = {
    "": Part(),
    "ignoreCorruptFiles": Part(options={"ignoreCorruptFiles": "true"}),
    "ignoreCorruptFiles-setting": Part(settings={"spark.sql.files.ignoreCorruptFiles": "true"}),
}
_TYPED_SCHEMAS = {
    "": Part(schema=f"{_COLUMNS}, a ARRAY<BIGINT>, o STRUCT<k: BIGINT, s: STRING>, m MAP<STRING, BIGINT>, x BINARY"),
    "other-types": Part(schema="id INT, d FLOAT, s STRING, t TIMESTAMP_NTZ, n DECIMAL(12,3), o STRUCT<k: INT, s: STRING, more: BOOLEAN>"),
    "string-columns": Part(schema="id STRING, d STRING, s STRING"),
    "nested-moments": Part(
        schema="id BIGINT, p STRUCT<t: TIMESTAMP, day: DATE, n: TIMESTAMP_NTZ>, l ARRAY<STRUCT<k: BIGINT>>, c BIGINT, u DECIMAL(20,0)"
    ),
}
_TYPED_INFERRED = {name: _INFERRED[name] for name in ("inferred", "inferred-with-rescue")}
PARQUET: Grid = {
    "schema": {**_TYPED_SCHEMAS, **_TYPED_INFERRED},
    "rescue": {"": Part(), "rescue": Part(loader=_RESCUE)},
    "rebase": _REBASE,
    "damage": _DAMAGE,
    "merge": {"": Part(), "mergeSchema": Part(options={"mergeSchema": "true"})},
    "parquet settings": {
        "": Part(),
        "binaryAsString": Part(settings={"spark.sql.parquet.binaryAsString": "true"}),
        "inferTimestampNTZ=false": Part(settings={"spark.sql.parquet.inferTimestampNTZ.enabled": "false"}),
        "row-reader": Part(settings={"spark.sql.parquet.enableVectorizedReader": "false"}),
    },
    **SETTINGS,
}
ORC: Grid = {
    "schema": _TYPED_SCHEMAS,
    "rescue": PARQUET["rescue"],
    "damage": _DAMAGE,
    "merge": PARQUET["merge"],
    **SETTINGS,
}
_AVRO_SETTING = "spark.sql.avro.datetimeRebaseModeInRead"
_AVRO_FIELDS = [{"name": "id", "type": ["null", "long"], "default": None}, {"name": "s", "type": "string", "default": "none"}]
AVRO: Grid = {
    "schema": {
        "": Part(schema=f"{_COLUMNS}, a ARRAY<BIGINT>, o STRUCT<k: BIGINT, s: STRING>, m MAP<STRING, BIGINT>, x BINARY"),
        "other-types": Part(
            schema="id INT, d FLOAT, s BINARY, t TIMESTAMP_NTZ, n DECIMAL(12,3), u STRUCT<member0: BIGINT, member1: STRING>, "
            "o STRUCT<k: INT, s: STRING, more: BOOLEAN>"
        ),
        "string-columns": Part(schema="id STRING, d STRING, s STRING"),
        **_TYPED_INFERRED,
    },
    "rescue": PARQUET["rescue"],
    "rebase": {
        "": Part(),
        **{f"rebase={mode}": Part(options={"datetimeRebaseMode": mode}) for mode in ("LEGACY", "CORRECTED", "EXCEPTION")},
        **{f"rebase-setting={mode}": Part(settings={_AVRO_SETTING: mode}) for mode in ("LEGACY", "CORRECTED")},
    },
    "damage": _DAMAGE,
    "merge": PARQUET["merge"],
    "schema of reading": {
        "": Part(),
        "avroSchema": Part(options={"avroSchema": json.dumps({"type": "record", "name": "row", "fields": _AVRO_FIELDS})}),
    },
    **SETTINGS,
}
TEXT: Grid = {
    "schema": {"": Part(), "declared": Part(schema="value STRING")},
    "whole": {"": Part(), "wholeText": Part(options={"wholetext": "true"})},
    "charset": _CHARSETS,
    "ends": {**_ENDS, "bar": Part(options={"lineSep": "|"})},
    **SETTINGS,
}
BINARY: Grid = {
    "schema": {"": Part(), "declared": Part(schema="path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY")},
    "damage": _DAMAGE,
    **SETTINGS,
}
GRIDS: Mapping[str, tuple[str, Grid]] = {
    "json": ("json", JSON),
    "json inferred": ("json", JSON_INFERRED),
    "csv": ("csv", CSV),
    "csv inferred": ("csv", CSV_INFERRED),
    "xml": ("xml", XML),
    "xml inferred": ("xml", XML_INFERRED),
    "parquet": ("parquet", PARQUET),
    "orc": ("orc", ORC),
    "avro": ("avro", AVRO),
    "text": ("text", TEXT),
    "binaryFile": ("binaryFile", BINARY),
}
