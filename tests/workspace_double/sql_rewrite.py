"""Statements as SQLite can execute them with the meaning that Databricks gives them; what has no such form is refused."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tests.workspace_double.wire import unmodelled

DIALECT = "databricks"
# Functions by sqlglot's names. Whatever is not here is refused, since SQLite may have one of that name with another meaning.
_KNOWN = """
Abs And AnyValue Avg Case Cast Ceil Coalesce Concat ConcatWs Count CountIf CurrentDate CurrentTimestamp DateDiff DateTrunc Day DenseRank
Exists FirstValue Floor Greatest GroupConcat Hex If JSONExtract JSONExtractScalar Lag LastValue Lead Least Length LogicalAnd LogicalOr
Lower MD5 Max Min Month Nullif Or Rank RegexpLike Replace Round RowNumber SHA SHA2 StrPosition Substring Sum TimestampTrunc Trim TryCast
TsOrDsAdd TsOrDsToDate UnixMicros Upper Xor Year
"""
_CLASSES = frozenset(_KNOWN.split())
_BY_NAME = {"pmod": "_pmod", "crc32": "_crc32", "isnull": "_isnull", "isnotnull": "_isnotnull"}
_REFUSED = (exp.TableSample, exp.Lateral, exp.Pivot, exp.Unnest, exp.Interval, exp.Values)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "DOUBLE", "FLOAT")


def type_of(node: Any) -> str:
    """The type of an expression as Databricks SQL writes it, `UNKNOWN` where nobody said it."""
    text = str(node.type.sql(DIALECT)) if getattr(node, "type", None) else "UNKNOWN"
    text = text.replace(", ", ",") if text.startswith("DECIMAL") else text
    inner = node.unalias() if isinstance(node, exp.Alias) else node
    if isinstance(inner, exp.TimestampTrunc) or text in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
        return "TIMESTAMP"
    if isinstance(inner, exp.JSONExtract | exp.JSONExtractScalar):
        return "STRING"
    if isinstance(inner, exp.Ceil | exp.Floor):
        return "BIGINT"
    if isinstance(inner, exp.Sum | exp.Avg) and type_of(inner.this).startswith("DECIMAL("):
        digits, scale = (int(part) for part in type_of(inner.this)[8:-1].split(","))
        more = (10, 0) if isinstance(inner, exp.Sum) else (4, 4)
        return f"DECIMAL({min(38, digits + more[0])},{scale + more[1]})"
    return text


def check(tree: exp.Expr) -> None:
    """Refuse what has no form in SQLite, or another meaning there. Raises ApiError 501."""
    for node in tree.walk():
        name = type(node).__name__
        if isinstance(node, _REFUSED) or (isinstance(node, exp.Table) and node.args.get("sample")):
            raise unmodelled(f"{node.key.upper()} in SQL")
        if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME:
            continue
        if isinstance(node, exp.Func) and name not in _CLASSES:
            raise unmodelled(f"the SQL function {node.sql(DIALECT)}")
        if isinstance(node, exp.Mul | exp.Div) and any(type_of(side).startswith("DECIMAL") for side in (node.this, node.expression)):
            raise unmodelled("products and quotients of decimals")
        if isinstance(node, exp.In | exp.Between):
            sides = [node.this, *node.expressions, node.args.get("low"), node.args.get("high")]
            if len({_group(side) for side in sides if side is not None} - {"other"}) > 1:
                raise unmodelled("IN and BETWEEN over different types")


def rewrite(tree: exp.Query) -> str:
    """The text of a resolved statement for SQLite; the tree is changed."""
    for node in reversed(list(tree.dfs())):  # what is within before what is around it
        new = _rewritten(node)
        if new is not node:
            new.type = type_of(node) if isinstance(node, exp.Condition) and type_of(node) != "UNKNOWN" else None
            node.replace(new)
    return tree.sql("sqlite")


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[exp.Literal.string(each) if isinstance(each, str) else each for each in arguments])


def _group(node: Any) -> str:
    base = type_of(node).partition("(")[0]
    return "number" if base in _NUMBERS else base if base in ("STRING", "TIMESTAMP", "DATE", "BOOLEAN") else "other"


def _text(node: Any) -> Any:
    """An expression as Databricks casts it to text."""
    return node if type_of(node) == "STRING" else _call("_text", node, type_of(node))


def _rewritten(node: Any) -> Any:
    if isinstance(node, exp.Table) and node.db:
        return exp.Table(this=exp.to_identifier(f"{node.catalog}.{node.db}.{node.name}", quoted=True), alias=node.args.get("alias"))
    if isinstance(node, exp.Cast):  # TryCast is one too
        return _cast(node)
    if isinstance(node, _COMPARISONS):
        return _compared(node)
    if isinstance(node, exp.ConcatWs):  # which is a Concat too
        return _call("_concat_ws", *(_text(part) for part in node.expressions))
    if isinstance(node, exp.DPipe | exp.Concat):
        parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
        return _call("_concat", *(_text(part) for part in parts))
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        keys = [part for part in node.expression.expressions if not isinstance(part, exp.JSONPathRoot)]
        path = "".join(f"[{part.this}]" if isinstance(part, exp.JSONPathSubscript) else f"['{part.this}']" for part in keys)
        return _call("_json", node.this, path)
    if isinstance(node, exp.Dot):
        return _call("_field", node.this, f"['{node.expression.name}']")
    if isinstance(node, exp.Bracket):
        return _call("_field", node.this, f"[{node.expressions[0].name}]")
    return _function(node)


def _cast(node: Any) -> Any:
    target, source = node.to.sql(DIALECT).replace(", ", ","), type_of(node.this)
    if target == "STRING" and source != "UNKNOWN":
        return _text(node.this)
    return _call("_try_cast" if isinstance(node, exp.TryCast) else "_cast", node.this, target)


def _compared(node: Any) -> Any:
    """Text is compared with a number as a number, with a time as a time (documentation page "SQL data type rules")."""
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if _group(side) == "STRING" and _group(other) == "number":
            side.replace(_call("_cast", side.copy(), "BIGINT" if "INT" in type_of(other) else "DOUBLE"))
        elif _group(other) == "TIMESTAMP" and _group(side) in ("STRING", "DATE"):
            side.replace(_call("_cast", side.copy(), "TIMESTAMP"))
    return node


def _function(node: Any) -> Any:
    if isinstance(node, exp.Div):
        return _call("_divide", node.this, node.expression)
    if isinstance(node, exp.Mod):
        return _call("_modulo", node.this, node.expression)
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        return _call("_trunc", node.args["unit"].name, node.this)
    if isinstance(node, exp.Greatest | exp.Least):
        return _call(f"_{node.key}", node.this, *node.expressions)
    if isinstance(node, exp.RegexpLike):
        return _call("_regexp", node.expression, node.this)
    if isinstance(node, exp.Upper | exp.Lower | exp.Year | exp.Month | exp.Day | exp.CurrentTimestamp | exp.Hex | exp.UnixMicros):
        return _call(f"_{node.key}", *([node.this] if node.this else []))
    if isinstance(node, exp.MD5 | exp.SHA):
        return _call(f"_{node.key}", _text(node.this))
    if isinstance(node, exp.SHA2):
        return _call("_sha2", _text(node.this), node.args.get("length") or exp.Literal.number(256))
    if isinstance(node, exp.Substring):
        return _call("_substring", _text(node.this), *(node.args[key] for key in ("start", "length") if node.args.get(key)))
    if isinstance(node, exp.Length):
        return _call("_length", _text(node.this))
    if isinstance(node, exp.TsOrDsAdd) and (not node.args.get("unit") or node.args["unit"].name.upper() == "DAY"):
        return _call("_date_add", node.this, node.expression)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME:
        return _call(_BY_NAME[node.name.lower()], *node.expressions)
    return node
