"""Expressions of Spark SQL in SQL of DuckDB, with the types that Spark gives them.

Only what is named here is translated: an unknown node, function, type or part of a clause raises NotSame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp

from lakelet.inspection.duckdb import casts, functions
from lakelet.inspection.duckdb.casts import cast, literal_as, widened
from lakelet.inspection.duckdb.functions import function, same_typed
from lakelet.inspection.duckdb.values import (
    BOOLEAN,
    STRING,
    VOID,
    NotSame,
    QueryScope,
    Type,
    Value,
    common,
    duck_name,
    field_of,
    only,
    text_literal,
    written,
)

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_PREDICATES = (*_COMPARED, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like)
_SUMS = (exp.Add, exp.Sub)
_CAST_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint", "DOUBLE": "double",
    "TEXT": "string", "DATE": "date", "TIMESTAMPTZ": "timestamp", "TIMESTAMPNTZ": "timestamp_ntz",
}  # fmt: skip
Subquery = Callable[[exp.Expr], tuple[str, Type]]
"""Translates a subquery of one column: its text and the type."""


@dataclass(frozen=True)
class Expressions:
    """Translates the expressions of one SELECT.

    `groups`: the texts of the grouping expressions where only they and aggregates may stand, None elsewhere. `aggregates` and `windows`:
    whether such functions may stand here. `aliases`: columns of the SELECT list that may be named, by lower-case name.
    """

    scope: QueryScope
    subquery: Subquery
    groups: frozenset[str] | None = None
    aggregates: bool = False
    windows: bool = False
    aliases: Mapping[str, Value] = field(default_factory=dict)

    def of(self, node: exp.Expr) -> Value:
        """The expression. Raises NotSame."""
        if self.groups:
            with suppress(NotSame):
                whole = replace(self.rows(), aliases={}).of(node)
                if whole.sql in self.groups:
                    return whole
        build = _NODES.get(type(node))
        if build is None:
            raise NotSame(f"{node.key} in an expression")
        return build(self, node)

    def condition(self, node: exp.Expr) -> str:
        """The text of a boolean expression."""
        found = self.of(node)
        if found.type != BOOLEAN:
            raise NotSame(f"a condition of the type {found.type}")
        return found.sql

    def rows(self) -> Expressions:
        """The same for what is evaluated on each row of the input, as the arguments of an aggregate are."""
        return replace(self, groups=None, aggregates=False, windows=False)


def operand(self: Expressions, node: exp.Expr) -> Value:
    """An operand of an operator. A predicate or `||` beside a sign must be in parentheses: the precedence differs between parsers."""
    if isinstance(node, _PREDICATES):
        raise NotSame("a predicate without parentheses within another")
    return self.of(node)


def _column(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise NotSame("a star within an expression")
    parts = [written(node.args[key]) for key in ("catalog", "db", "table", "this") if node.args.get(key)]
    alias = self.aliases.get(parts[0].lower()) if len(parts) == 1 else None
    if alias is not None and not self.scope.has(parts[0]):
        return alias
    value = self.scope.resolve(parts)
    if alias is not None and alias.sql != value.sql:
        raise NotSame(f"{parts[0]} is a column and an alias")
    if self.groups is not None:
        raise NotSame(f"{'.'.join(parts)} is neither grouped nor aggregated")
    return value


def _dot(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression")
    return field_of(self.of(node.this), written(node.expression))


def _literal(self: Expressions, node: exp.Expr) -> Value:
    text = str(node.this)
    if not node.args.get("is_string"):
        return casts.number(text)
    if "'" in text or '"' in text:
        raise NotSame("a text with a quote in it")
    return Value(text_literal(text), STRING, text, text)


def _boolean(self: Expressions, node: exp.Expr) -> Value:
    word = "true" if node.this else "false"
    return Value(word, BOOLEAN, word)


def _null(self: Expressions, node: exp.Expr) -> Value:
    return Value("NULL", VOID, "NULL")


def _paren(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this")
    return self.of(node.this)


def _negative(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.args.get("is_string"):
        return casts.number(str(node.this.this), negative=True)
    return casts.negated(operand(self, node.this))


def _calculation(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression", "typed", "safe")
    if isinstance(node.this, exp.DPipe) or isinstance(node.expression, exp.DPipe):
        raise NotSame("|| beside another operator")
    return casts.calculated(type(node), operand(self, node.this), operand(self, node.expression))


def _joined_text(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression", "safe")
    if isinstance(node.this, _SUMS) or isinstance(node.expression, _SUMS):
        raise NotSame("|| beside another operator")
    left, right = operand(self, node.this), operand(self, node.expression)
    if left.type != STRING or right.type != STRING:
        raise NotSame(f"|| of a {left.type} and a {right.type}")
    return Value(f"({left.sql} || {right.sql})", STRING)


def _alike(left: Value, right: Value) -> tuple[str, str, Type]:
    """Both sides of a comparison in one type."""
    times = ("date", "timestamp", "timestamp_ntz")
    if left.type.kind in times and right.type == STRING:
        right = literal_as(right, left.type)
    elif right.type.kind in times and left.type == STRING:
        left = literal_as(left, right.type)
    kind = common(left.type, right.type)
    if kind.is_nested or kind == VOID:
        raise NotSame(f"a comparison of values of the type {kind}")
    return widened(left, kind), widened(right, kind), kind


def _comparison(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression")
    left, right = operand(self, node.this), operand(self, node.expression)
    one, two, _ = _alike(left, right)
    sign = _COMPARED[type(node)]
    name = f"({left.name} {sign} {right.name})" if left.name and right.name else None
    if sign == "<>" and name:
        name = f"(NOT ({left.name} = {right.name}))"
    return Value(f"({one} {'IS NOT DISTINCT FROM' if sign == '<=>' else sign} {two})", BOOLEAN, name)


def _junction(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression")
    word = "AND" if isinstance(node, exp.And) else "OR"
    left, right = self.of(node.this), self.of(node.expression)
    if left.type != BOOLEAN or right.type != BOOLEAN:
        raise NotSame(f"{word} of a {left.type} and a {right.type}")
    return Value(f"({left.sql} {word} {right.sql})", BOOLEAN, f"({left.name} {word} {right.name})" if left.name and right.name else None)


def _not(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this")
    value = self.of(node.this)
    if value.type != BOOLEAN:
        raise NotSame(f"NOT of a {value.type}")
    shown = f"(NOT {value.name})" if value.name else None
    if isinstance(node.this, exp.Is) and value.name:
        shown = value.name.removesuffix(" IS NULL)") + " IS NOT NULL)"
    return Value(f"(NOT {value.sql})", BOOLEAN, shown)


def _is(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression")
    if not isinstance(node.expression, exp.Null):
        raise NotSame("IS with another word than NULL")
    value = operand(self, node.this)
    return Value(f"({value.sql} IS NULL)", BOOLEAN, f"({value.name} IS NULL)" if value.name else None)


def _in(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expressions", "query")
    value = operand(self, node.this)
    query = node.args.get("query")
    if query is not None:
        text, kind = self.subquery(query.unnest() if isinstance(query, exp.Subquery) else query)
        if kind != value.type or kind.is_nested or kind.is_floating:
            raise NotSame(f"a {value.type} in a list of {kind}")
        return Value(f"({value.sql} IN ({text}))", BOOLEAN)
    items = [operand(self, item) for item in node.expressions]
    if value.type.kind in ("date", "timestamp", "timestamp_ntz"):
        items = [literal_as(item, value.type) if item.type == STRING else item for item in items]
    if not items or any(item.type not in (value.type, VOID) and not (item.type.is_integer and value.type.is_integer) for item in items):
        raise NotSame("IN with values of another type")
    texts, kind = same_typed([value, *items])
    if kind.is_nested:
        raise NotSame(f"IN of values of the type {kind}")
    names = [item.name for item in items]
    shown = f"({value.name} IN ({', '.join(map(str, names))}))" if value.name and None not in names else None
    return Value(f"({texts[0]} IN ({', '.join(texts[1:])}))", BOOLEAN, shown)


def _between(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "low", "high")
    value, low, high = (operand(self, node.args[key]) for key in ("this", "low", "high"))
    one, least, _ = _alike(value, low)
    two, most, _ = _alike(value, high)
    shown = f"between({value.name}, {low.name}, {high.name})" if value.name and low.name and high.name else None
    return Value(f"(({one} >= {least}) AND ({two} <= {most}))", BOOLEAN, shown)


def _like(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression", "negate")
    value, pattern = operand(self, node.this), operand(self, node.expression)
    if value.type != STRING or pattern.type != STRING or pattern.constant is None:
        raise NotSame("LIKE with a pattern that is not text")
    shown = f"{value.name} LIKE {pattern.constant}" if value.name else None
    if node.args.get("negate"):
        return Value(f"(NOT ({value.sql} LIKE {pattern.sql}))", BOOLEAN, f"(NOT {shown})" if shown else None)
    return Value(f"({value.sql} LIKE {pattern.sql})", BOOLEAN, shown)


def _cast(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "to", "safe")
    kind, shown = _cast_type(node.args["to"])
    value = operand(self, node.this)
    if node.args.get("safe"):
        if not (value.type == kind or (value.type.is_integer and kind.is_integer)):
            raise NotSame(f"try_cast from {value.type} to {kind}")
        return Value(f"TRY_CAST({value.sql} AS {duck_name(kind)})", kind, f"TRY_CAST({value.name} AS {shown})" if value.name else None)
    literal = isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast)  # DATE '…'
    if literal:
        return literal_as(value, kind)
    return Value(cast(value, kind), kind, None if value.name is None or value.constant else f"CAST({value.name} AS {shown})")


def _cast_type(node: exp.Expr) -> tuple[Type, str]:
    only(node, "this", "expressions")
    word = str(node.this.value)
    if word == "DECIMAL" and node.expressions:
        sizes = [int(str(size.this.this)) for size in node.expressions]
        kind = Type("decimal", sizes[0], sizes[1] if len(sizes) > 1 else 0)
        if not (0 < kind.precision <= 38 and 0 <= kind.scale <= kind.precision):
            raise NotSame(f"the type {kind}")
        return kind, str(kind).upper()
    if word not in _CAST_TYPES or node.expressions:
        raise NotSame(f"a cast to {word}")
    return Type(_CAST_TYPES[word]), _CAST_TYPES[word].upper()


def _case(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "ifs", "default")
    if node.this is not None:
        subject = operand(self, node.this)
        tests: list[tuple[str, str | None]] = []
        for branch in node.args["ifs"]:
            one, two, _ = _alike(subject, operand(self, branch.this))
            tests.append((f"{one} = {two}", None))
    else:
        found = [self.of(branch.this) for branch in node.args["ifs"]]
        if any(test.type != BOOLEAN for test in found):
            raise NotSame("CASE WHEN with something else than a condition")
        tests = [(test.sql, test.name) for test in found]
    results = [self.of(branch.args["true"]) for branch in node.args["ifs"]]
    default = node.args.get("default")
    otherwise = [self.of(default)] if default is not None else []
    texts, kind = same_typed([*results, *otherwise])
    branches = "".join(f" WHEN {test} THEN {text}" for (test, _), text in zip(tests, texts, strict=False))
    last = f" ELSE {texts[-1]}" if otherwise else ""
    names = [*(name for _, name in tests), *(value.name for value in (*results, *otherwise))]
    shown = None
    if None not in names:
        shown = "CASE" + "".join(f" WHEN {test[1]} THEN {value.name}" for test, value in zip(tests, results, strict=True))
        shown += (f" ELSE {otherwise[0].name}" if otherwise else "") + " END"
    return Value(f"(CASE{branches}{last} END)", kind, shown)


def _call(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expressions")
    name, arguments = str(node.this).lower(), node.expressions
    if name in functions.NAMES:
        return _aggregate(self, name, arguments, None)
    if name == "if" and len(arguments) == 3:
        condition = self.condition(arguments[0])
        texts, kind = same_typed([self.of(argument) for argument in arguments[1:]])
        return Value(f"(CASE WHEN {condition} THEN {texts[0]} ELSE {texts[1]} END)", kind)
    return function(name, [self.of(argument) for argument in arguments])


def _filtered(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "expression")
    call = node.this
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() not in functions.NAMES:
        raise NotSame("FILTER after something else than an aggregate")
    return _aggregate(self, str(call.this).lower(), call.expressions, self.rows().condition(node.expression.this))


def _aggregate(self: Expressions, name: str, arguments: Sequence[exp.Expr], condition: str | None) -> Value:
    if not self.aggregates:
        raise NotSame(f"{name} where no aggregate may stand")
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only(arguments[0], "expressions")
        arguments = arguments[0].expressions
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not distinct:
        only(arguments[0])
        return functions.counted_rows(condition)
    return functions.aggregate(name, [self.rows().of(argument) for argument in arguments], distinct, condition)


def _window(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this", "partition_by", "order", "over")
    if not self.windows or not isinstance(node.this, exp.Anonymous):
        raise NotSame("a window here")
    if str(node.args.get("over")) != "OVER":
        raise NotSame("a named window")
    rows = self.rows()
    partition = [rows.of(part) for part in node.args.get("partition_by") or ()]
    order = node.args.get("order")
    ordered = [(rows.of(item.this), direction(item)) for item in order.expressions] if order is not None else []
    name, arguments = str(node.this.this).lower(), node.this.expressions
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return functions.window(name, None if star else [rows.of(argument) for argument in arguments], partition, ordered)


def direction(item: exp.Expr) -> str:
    """`ASC NULLS FIRST` and the like: NULL is the least value in Spark unless the text says where it goes."""
    only(item, "this", "desc", "nulls_first")
    return f"{'DESC' if item.args.get('desc') else 'ASC'} NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"


def _subquery(self: Expressions, node: exp.Expr) -> Value:
    only(node, "this")
    text, kind = self.subquery(node.this)
    return Value(f"({text})", kind)


_NODES: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Value]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Neg: _negative,
    exp.DPipe: _joined_text,
    exp.And: _junction,
    exp.Or: _junction,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Anonymous: _call,
    exp.Filter: _filtered,
    exp.Window: _window,
    exp.Subquery: _subquery,
    **dict.fromkeys(_COMPARED, _comparison),
    **dict.fromkeys(casts.SIGNS, _calculation),
}
