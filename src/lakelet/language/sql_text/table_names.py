"""Which tables a SQL text reads, and where their names stand in it: asked of Spark's own parser.

Spark resolves names too late and in one catalog only; Lakelet resolves them itself, so it must know the exact characters to
replace. Nothing is analysed or run here (one exception: the constant inside `IDENTIFIER(…)`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelet.base.names import split_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = r"(?:`(?:[^`]|``)+`|[^\s`.(),;]+)"
_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_STREAM_HEAD = re.compile(rf"STREAM{_GAP}(?P<open>\(?){_GAP}", re.IGNORECASE | re.DOTALL)
_DOTTED = re.compile(rf"{_NAME}(?:{_GAP}\.{_GAP}{_NAME})*", re.DOTALL)
_IDENTIFIER = re.compile(rf"IDENTIFIER{_GAP}\(", re.IGNORECASE | re.DOTALL)
_OPTIONS = re.compile(rf"{_GAP}WITH{_GAP}\(", re.IGNORECASE | re.DOTALL)
_TRAVEL = re.compile(
    rf"{_GAP}(?:FOR\b{_GAP})?(?:SYSTEM_VERSION|VERSION|SYSTEM_TIME|TIMESTAMP){_GAP}AS{_GAP}OF{_GAP}"
    r"(?P<value>\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")?",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"\w+")
_TABLE_WORD = re.compile(r"\bTABLE(\s+|\s*\(\s*)$", re.IGNORECASE)
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[()]", re.DOTALL)
_QUESTION = re.compile(_TOKEN.pattern + r"|\?", re.DOTALL)
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SEPARATOR = re.compile(_TOKEN.pattern + "|,", re.DOTALL)
_NAMED = re.compile(rf"{_GAP}(?P<name>`(?:[^`]|``)+`|\w+){_GAP}=>", re.DOTALL)

_ORIGIN = re.compile(r"Origin\((?:Some\(\d+\)|None),(?:Some\(\d+\)|None),Some\((?P<start>\d+)\),Some\((?P<stop>\d+)\)")
_READS = re.compile(rf"{_GAP}\(*{_GAP}(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE | re.DOTALL)
_WRITES = re.compile(r"\bINSERT\b", re.IGNORECASE)

# Nodes that may stand between a relation and its alias, or behind a relation without one.
_DECORATIONS = frozenset(
    {"Sample", "RelationTimeTravel", "UnresolvedEventTimeWatermark", "NamedStreamingRelation", "UnresolvedSubqueryColumnAliases"}
)
_NOT_QUERIES = ("Command", "ParsedStatement")


@dataclass(frozen=True)
class RelationRef:
    """One position of a text that reads a table by name.

    `parts` is the name without quotes, `LIVE` included. `text[start:stop]` is the name as written (or the whole `IDENTIFIER(…)`), never
    the word STREAM or its parentheses. `streaming`: it stands in `STREAM(name)` or `STREAM name`. `has_alias`: the reference has an alias,
    or cannot take one (`TABLE name`). `alias_at`: where an alias may be inserted; None when `has_alias`. `options`: those of `WITH (…)`,
    and what `VERSION AS OF` and `TIMESTAMP AS OF` mean in options; `travel` is where that clause stands.
    """

    parts: tuple[str, ...]
    start: int
    stop: int
    streaming: bool
    has_alias: bool
    alias_at: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    travel: tuple[int, int] | None = None


@dataclass(frozen=True)
class CallRef:
    """One call of a table function. `text[start:stop]` is the call, never the word STREAM or parentheses around it.

    `arguments`: (name, text) of each; the name is None where there is none, without quotes otherwise.
    """

    name: str
    start: int
    stop: int
    streaming: bool
    arguments: tuple[tuple[str | None, str], ...]


def calls(spark: SparkSession, sql: str, functions: Collection[str]) -> list[CallRef]:
    """Return the calls of these table functions (lower-case names), in the order of the text, each position once.

    Positions are characters of `substitute(spark, sql)`. Raises like `relations`.
    """
    text = substitute(spark, sql)
    walk = _Walk(spark, text, frozenset(functions))
    found = {ref.start: ref for ref in walk.refs(parse(spark, text)) if isinstance(ref, CallRef)}
    return [found[start] for start in sorted(found)]


def in_place(spark: SparkSession, sql: str, plans: Mapping[str, Any]) -> Any:
    """Spark's unresolved plan of `sql` where each relation of one of these names is the (Java) plan given for it.

    Unlike a temporary view, a plan keeps its hidden columns. Names inside subquery expressions stay as they are.
    """
    jvm: Any = spark._jvm

    def sequence(items: list[Any]) -> Any:
        return jvm.PythonUtils.toSeq(items)

    def replaced(node: Any) -> Any:
        kind = str(node.nodeName())
        if kind == "UnresolvedRelation":
            return plans.get(".".join(str(part) for part in _items(node.multipartIdentifier())), node)
        if kind == "UnresolvedWith":
            ctes = [jvm.scala.Tuple3(c._1(), replaced(c._2()), c._3()) for c in _items(node.cteRelations())]
            return node.copy(replaced(node.child()), sequence(ctes), node.allowRecursion())
        children = [replaced(child) for child in _items(node.children())]
        return node.withNewChildren(sequence(children)) if children else node

    return replaced(parse(spark, sql))


def substitute(spark: SparkSession, sql: str) -> str:
    """Return `sql` with `${key}` replaced from the session's configuration, as Spark's parser does it.

    Positions of `relations` refer to this text. A text without `${` comes back unchanged.
    """
    if "${" not in sql:
        return sql
    jvm: Any = spark._jvm
    return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(sql))


def with_named_parameters(sql: str, args: Mapping[str, Any] | Sequence[Any] | None) -> tuple[str, Mapping[str, Any] | None]:
    """Return a text whose parameters have names, and their values: each `?` becomes one, for a name in `IDENTIFIER(?)` will be replaced."""
    if args is None or isinstance(args, Mapping):
        return sql, args
    named: dict[str, Any] = {}
    text, end = "", 0
    for token in _QUESTION.finditer(sql):
        if token.group() == "?" and len(named) < len(args):
            name = f"lakelet_{len(named)}"
            named[name] = args[len(named)]
            text, end = f"{text}{sql[end : token.start()]}:{name}", token.end()
    return text + sql[end:], named


def with_short_prefixes(text: str, names: Collection[tuple[str, ...]]) -> str:
    """Return SQL text where the last part alone stands for each of these names of several parts before a column (`db.t.a`, `db.t.*`)."""
    for parts in sorted(names, key=len, reverse=True):
        prefix = r"\s*\.\s*".join(rf"(?:{re.escape(quoted(part))}|{re.escape(part)})" for part in parts)
        pattern = re.compile(rf"{_STRING.pattern}|(?<![\w`.])(?P<prefix>{prefix})(?=\s*\.\s*[\w`*])", re.IGNORECASE | re.DOTALL)
        short = quoted(parts[-1])
        text = pattern.sub(lambda found, short=short: short if found["prefix"] else found.group(), text)  # type: ignore[misc]
    return text


def without_strings(text: str) -> str:
    """Return SQL text without the content of its strings, quoted names and comments."""
    return _TOKEN.sub(lambda token: token.group() if len(token.group()) == 1 else token.group()[0] * 2, text)


def relations(spark: SparkSession, sql: str, args: Mapping[str, Any] | None = None) -> list[RelationRef]:
    """Return the tables that the one statement `sql` reads, in the order of the text, each position once.

    Left out: names of common table expressions (where they are visible), table functions, and the target of an INSERT. Positions are
    characters of `substitute(spark, sql)`. `args`: the values of the text's named parameters, for `IDENTIFIER(…)`. Raises pyspark's
    ParseException when Spark cannot parse the text.
    """
    text = substitute(spark, sql)
    refs = (ref for ref in _Walk(spark, text, args=args).refs(parse(spark, text)) if isinstance(ref, RelationRef))
    found = {(ref.start, ref.stop): ref for ref in refs}
    return [found[span] for span in sorted(found)]


def rewrite(spark: SparkSession, sql: str, replacement: Callable[[RelationRef], str | None], args: Mapping[str, Any] | None = None) -> str:
    """Return the text with each table name replaced by what `replacement` gives for it; None leaves a name as it is.

    A name without an alias keeps its last part as alias, so that `SELECT t.a FROM db.t` still works. A temporary view, whose name is one
    plain word, has no versions: the clause that asks for one is taken out. Raises like `relations`.
    """
    text = substitute(spark, sql)
    edits: list[tuple[int, int, str]] = []
    for ref in relations(spark, text, args):
        new = replacement(ref)
        if new is None:
            continue
        edits.append((ref.start, ref.stop, new))
        if ref.travel is not None and _WORD.fullmatch(new):
            edits.append((*ref.travel, ""))
        if ref.alias_at is not None:
            edits.append((ref.alias_at, ref.alias_at, f" AS {quoted(ref.parts[-1])}"))
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def is_query(spark: SparkSession, sql: str) -> bool:
    """Whether `sql` only reads: no command, no insert, no script, in no part of it. Raises ParseException like `relations`."""
    if _READS.match(sql) and not _WRITES.search(sql):
        return True  # a statement that begins like this and inserts nothing is a query; if it is none at all, running it says so
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    prefix = "org.apache.spark.sql.catalyst.plans.logical."
    refused = [jvm.java.lang.Class.forName(prefix + name, True, loader) for name in _NOT_QUERIES]

    def reads_only(node: Any) -> bool:
        return not any(c.isInstance(node) for c in refused) and all(reads_only(child) for child in _items(node.children()))

    return reads_only(parse(spark, sql))


def parse(spark: SparkSession, sql: str) -> Any:
    """Spark's unresolved plan of `sql` (a Java object). Raises pyspark's ParseException."""
    session: Any = spark
    return session._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def quoted(name: str) -> str:
    """The name in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def _items(sequence: Any) -> Iterator[Any]:
    for index in range(sequence.size()):
        yield sequence.apply(index)


@dataclass(frozen=True)
class _Above:
    """What stands above a node: the visible CTE names (lower case), whether an alias follows, where the decorations end, the node of a
    clause that asks for a version."""

    ctes: frozenset[str] = frozenset()
    aliased: bool = False
    end: int = 0
    travel: Any = None


class _Walk:
    """One walk over a parsed plan, its subqueries and its common table expressions.

    `functions`: calls to tell of, and not to enter. `args`: the values of the text's named parameters.
    """

    def __init__(
        self, spark: SparkSession, text: str, functions: frozenset[str] = frozenset(), args: Mapping[str, Any] | None = None
    ) -> None:
        self.spark, self.text, self.functions, self.args = spark, text, functions, dict(args) if args else None

    def refs(self, node: Any, above: _Above = _Above()) -> Iterator[RelationRef | CallRef]:
        kind = str(node.nodeName())
        if kind == "UnresolvedTableValuedFunction" and self.functions:
            name = ".".join(str(part) for part in _items(node.name())).lower()
            if name in self.functions:
                yield self._call(node, name)
                return
        if kind in ("UnresolvedRelation", "PlanWithUnresolvedIdentifier"):
            yield from self._reference(node, kind, above)
            return
        if kind == "UnresolvedWith":
            yield from self._with(node, above.ctes)
            return
        below = self._below(node, kind, above)
        for subquery in _items(node.subqueries()):
            yield from self.refs(subquery, _Above(above.ctes))
        children = [node.relation()] if kind == "RelationTimeTravel" else _items(node.children())
        for child in children:
            yield from self.refs(child, below)

    def _below(self, node: Any, kind: str, above: _Above) -> _Above:
        if kind == "SubqueryAlias":
            return _Above(above.ctes, aliased=True)
        if kind in _DECORATIONS:
            travel = node if kind == "RelationTimeTravel" else above.travel
            return _Above(above.ctes, above.aliased, max(above.end, _span(node)[1]), travel)
        return _Above(above.ctes)

    def _with(self, node: Any, outer: frozenset[str]) -> Iterator[RelationRef | CallRef]:
        visible = outer
        recursive = bool(node.allowRecursion())
        for definition in _items(node.cteRelations()):
            name = str(definition._1()).lower()
            yield from self.refs(definition._2(), _Above(visible | {name} if recursive else visible))
            visible = visible | {name}
        yield from self.refs(node.child(), _Above(visible))

    def _reference(self, node: Any, kind: str, above: _Above) -> Iterator[RelationRef]:
        start, end = _span(node)
        streaming = kind == "UnresolvedRelation" and bool(node.isStreaming())
        start, stop = _name_span(self.text, start) if streaming else (start, end)
        options: Mapping[str, str] = {}
        if kind == "UnresolvedRelation":
            parts = tuple(str(node.multipartIdentifier().mkString("\0")).split("\0"))
            options = _options(node.options())
        else:
            parts = self._evaluated(self.text[start:stop])
        if len(parts) == 1 and parts[0].lower() in above.ctes:
            return
        options, travel = self._at_version(above.travel, stop, options)
        if above.aliased or _TABLE_WORD.search(self.text, 0, start):
            yield RelationRef(parts, start, stop, streaming, has_alias=True, options=options, travel=travel)
            return
        after = max(above.end, end if streaming else _after_options(self.text, end))
        yield RelationRef(parts, start, stop, streaming, has_alias=False, alias_at=after, options=options, travel=travel)

    def _at_version(self, node: Any, name_end: int, options: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[int, int] | None]:
        """The options with those of a clause `VERSION AS OF …` behind the name, and the span of that clause; None where there is none."""
        clause = _TRAVEL.match(self.text, name_end) if node is not None else None
        if clause is None:
            return options, None
        if node.version().isDefined():
            return {**options, "versionAsOf": str(node.version().get())}, clause.span()
        moment = _span(node.timestamp().get())
        begin = clause.start("value") if clause["value"] else clause.end()
        end = max(clause.end(), moment[1])
        row = self.spark.sql(f"SELECT CAST({self.text[begin:end]} AS STRING)", self.args).first()
        return {**options, "timestampAsOf": str(row[0]) if row else ""}, (clause.start(), end)

    def _call(self, node: Any, name: str) -> CallRef:
        start, _ = _span(node)
        streaming = bool(node.isStreaming())
        if streaming:
            start, _ = _name_span(self.text, start)
        opening = self.text.index("(", start) + 1
        stop = _closing(self.text, opening)
        return CallRef(name, start, stop, streaming, tuple(_arguments(self.text[opening : stop - 1])))

    def _evaluated(self, identifier: str) -> tuple[str, ...]:
        inner = identifier[identifier.index("(") :]
        row = self.spark.sql(f"SELECT CAST({inner} AS STRING)", self.args).first()
        return split_name(str(row[0])) if row else ()


def _options(options: Any) -> Mapping[str, str]:
    """The options of `WITH (…)`; py4j ends each walk over a Java map with an exception, so an empty one is not walked."""
    return {} if options.isEmpty() else dict(options.asCaseSensitiveMap())


def _span(node: Any) -> tuple[int, int]:
    """Half-open character span of a node's origin; (0, 0) when it has none."""
    found = _ORIGIN.match(str(node.origin().toString()))  # one round trip for both ends
    return (int(found["start"]), int(found["stop"]) + 1) if found else (0, 0)


def _name_span(text: str, start: int) -> tuple[int, int]:
    """The span of the name in `STREAM(name)` or `STREAM name`, which begins at `start`."""
    head = _STREAM_HEAD.match(text, start)
    begin = head.end() if head else start
    identifier = _IDENTIFIER.match(text, begin)
    if identifier:
        return begin, _closing(text, identifier.end())
    name = _DOTTED.match(text, begin)
    return begin, name.end() if name else begin


def _after_options(text: str, position: int) -> int:
    """The end of a `WITH (…)` clause that follows `position`, else `position`."""
    options = _OPTIONS.match(text, position)
    return _closing(text, options.end()) if options else position


def _closing(text: str, position: int) -> int:
    """The position behind the parenthesis that closes the one opened just before `position`; strings and comments do not count."""
    depth = 1
    for token in _TOKEN.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return len(text)


def _arguments(text: str) -> Iterator[tuple[str | None, str]]:
    """The arguments of a call, split at its own commas."""
    depth, start, pieces = 0, 0, []
    for token in _SEPARATOR.finditer(text):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if token.group() == "," and depth == 0:
            pieces.append(text[start : token.start()])
            start = token.end()
    pieces.append(text[start:])
    for piece in pieces:
        named = _NAMED.match(piece)
        if named is not None:
            yield named["name"].strip("`").replace("``", "`"), piece[named.end() :].strip()
        elif piece.strip():
            yield None, piece.strip()


def names_of(refs: Sequence[RelationRef]) -> list[str]:
    """The dotted names of the references, quoted where needed, each once, in order."""
    plain = re.compile(r"\w+")
    return list(dict.fromkeys(".".join(p if plain.fullmatch(p) else quoted(p) for p in ref.parts) for ref in refs))
