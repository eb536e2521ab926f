"""Which tables a SQL text reads, and where their names stand in it: asked of Spark's own parser.

Spark resolves names too late and in one catalog only; Lakelet resolves them itself, so it must know the exact characters to
replace. Nothing is analysed or run here (one exception: the constant inside `IDENTIFIER(…)`).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakelet.base.names import dotted, is_plain, quoted, split_name
from lakelet.jvm.expressions import only_reads, parsed, substituted, with_relations
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import settings_text
from lakelet.language.sql_text.tokens import Token, closing, edited, may_have, name_end, plain_tokens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_VERSIONS = ("SYSTEM_VERSION", "VERSION", "SYSTEM_TIME", "TIMESTAMP")
_ORIGIN = re.compile(r"Origin\((?:Some\(\d+\)|None),(?:Some\(\d+\)|None),Some\((?P<start>\d+)\),Some\((?P<stop>\d+)\)")
# Nodes that may stand between a relation and its alias, or after a relation without one.
_DECORATIONS = frozenset(
    {"Sample", "RelationTimeTravel", "UnresolvedEventTimeWatermark", "NamedStreamingRelation", "UnresolvedSubqueryColumnAliases"}
)


@dataclass(frozen=True)
class RelationRef:
    """One position of a text that reads a table by name.

    `parts` is the name without quotes, `LIVE` included. `text[start:stop]` is the name as written (or the whole `IDENTIFIER(…)`), never
    the word STREAM or its parentheses. `streaming`: it stands in `STREAM(name)` or `STREAM name`. `has_alias`: the reference has an alias,
    or cannot take one (`TABLE name`). `alias_at`: where an alias may be inserted; None when `has_alias`. `options`: those of `WITH (…)`,
    and what `VERSION AS OF` and `TIMESTAMP AS OF` mean in options; `travel` is where that clause stands. `stream`: where the word STREAM
    stands, if the reference has it.
    """

    parts: tuple[str, ...]
    start: int
    stop: int
    streaming: bool
    has_alias: bool
    alias_at: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    travel: tuple[int, int] | None = None
    stream: tuple[int, int] | None = None


@dataclass(frozen=True)
class CallRef:
    """One call of a table function. `text[start:stop]` is the call, never the word STREAM or parentheses around it.

    `arguments`: (name, text) of each; the name is None where there is none, without quotes otherwise. `stream`: as in `RelationRef`.
    """

    name: str
    start: int
    stop: int
    streaming: bool
    arguments: tuple[tuple[str | None, str], ...]
    stream: tuple[int, int] | None = None


@dataclass(frozen=True)
class Edits:
    """A SQL text, and what replaces parts of it: (start, stop, new text) of each, by positions in `text`. All are applied together."""

    text: str
    edits: tuple[tuple[int, int, str], ...] = ()

    def plus(self, edits: Iterable[tuple[int, int, str]]) -> Edits:
        """The same with more edits, but for those within parts that are replaced already."""
        free = [(start, stop, new) for start, stop, new in edits if not any(b < stop and start < e for b, e, _ in self.edits)]
        return Edits(self.text, (*self.edits, *free))

    def applied(self) -> str:
        """The text with all edits."""
        return edited(self.text, self.edits)


def in_place(spark: SparkSession, sql: str, plans: Mapping[str, Any]) -> Any:
    """Spark's unresolved plan of `sql` where each relation of one of these names is the (Java) plan given for it.

    Unlike a temporary view, a plan keeps its hidden columns. Names inside subquery expressions stay as they are.
    """
    return with_relations(spark, parsed(spark, sql), plans)


def substitute(spark: SparkSession, sql: str) -> str:
    """Return `sql` with `${key}` replaced from the session's configuration, as Spark's parser does it.

    Positions of `references` refer to this text. A text without `${` comes back unchanged.
    """
    if "${" not in sql:
        return sql
    return substituted(spark, sql)


def with_named_parameters(sql: str, args: Mapping[str, Any] | Sequence[Any] | None) -> tuple[str, Mapping[str, Any] | None]:
    """Return a text whose parameters have names, and their values: each `?` becomes one, for a name in `IDENTIFIER(?)` will be replaced."""
    if args is None or isinstance(args, Mapping):
        return sql, args
    signs = [token for token in plain_tokens(sql) if token.upper == "?"][: len(args)]
    named = {f"lakelet_{at}": value for at, value in enumerate(args[: len(signs)])}
    return edited(sql, [(sign.start, sign.stop, f":{name}") for sign, name in zip(signs, named, strict=True)]), named


def with_short_prefixes(query: Edits, names: Mapping[tuple[str, ...], str]) -> Edits:
    """Return a query where one word stands for each of these names of several parts before a column (`db.t.a`, `db.t.*`).

    `names`: the word by the parts of the name in lower case.
    """
    found, edits, at = plain_tokens(query.text), [], 0
    while at < len(found):
        end = name_end(found, at)
        parts = tuple(token.value.lower() for token in found[at:end:2])
        columns = parts if [token.upper for token in found[end : end + 2]] == [".", "*"] else parts[:-1]
        length = next((n for n in range(len(columns), 1, -1) if columns[:n] in names), 0)
        if length:
            edits.append((found[at].start, found[at + 2 * length - 2].stop, quoted(names[columns[:length]])))
        at = max(end, at + 1)
    return query.plus(edits)


def references(
    spark: SparkSession, sql: str, functions: Collection[str] = (), args: Mapping[str, Any] | None = None
) -> list[RelationRef | CallRef]:
    """Return the tables that `sql` reads and its calls of these table functions (lower-case names), in the order of the text.

    Each position is there once. Left out: names of common table expressions (where they are visible), other table functions, and the target
    of an INSERT; the arguments of a call are not read. Positions are characters of `substitute(spark, sql)`. `args`: the values of the
    text's named parameters, for `IDENTIFIER(…)`. Raises pyspark's ParseException when Spark cannot parse the text.
    """
    text = substitute(spark, sql)
    called = frozenset(functions if may_have(text, functions) else ())
    if args is not None or may_have(text, ("IDENTIFIER",)):
        return _found_references(spark, text, called, args)
    asked = text, settings_text(spark), called
    found = _known.get(asked)
    if found is None:
        found = tuple(_found_references(spark, text, called, None))
        if len(_known) >= _KNOWN_TEXTS:
            _known.clear()
        _known[asked] = found
    return [*found]


_known: dict[tuple[str, str, frozenset[str]], tuple[RelationRef | CallRef, ...]] = {}
"""References by text, settings and functions. Walking a plan takes thousands of calls to Java; each update asks for each text twice, a
continuous one in every round."""
_KNOWN_TEXTS = 512


def _found_references(
    spark: SparkSession, text: str, functions: frozenset[str], args: Mapping[str, Any] | None
) -> list[RelationRef | CallRef]:
    found = {(ref.start, ref.stop): ref for ref in _PlanWalk(spark, text, functions, args).refs(parsed(spark, text))}
    return [found[span] for span in sorted(found)]


@dataclass(frozen=True)
class ReferenceReplacements:
    """What replaces the references of a text.

    Attributes:
        table: what replaces the name of a table; None leaves it as it is.
        call: what replaces a call of one of `functions`, the name of a view.
        functions: names of table functions, in lower case.
        alias: what a table without an alias is called in the query.
        batches: whether references that are replaced lose the word STREAM.
    """

    table: Callable[[RelationRef], str | None]
    call: Callable[[CallRef], str] | None = None
    functions: frozenset[str] = frozenset()
    alias: Callable[[RelationRef], str] = lambda ref: ref.parts[-1]
    batches: bool = False


def replace_references(spark: SparkSession, sql: str, new: ReferenceReplacements, args: Mapping[str, Any] | None = None) -> Edits:
    """Return the text with what replaces its references: calls are asked for first, then tables, each in the order of the text.

    A name without an alias gets one, as a rule its last part, so that `SELECT t.a FROM db.t` still works. A temporary view, whose name is
    one plain word, has no versions: the clause that asks for one is taken out. Raises like `references`.
    """
    text = substitute(spark, sql)
    edits: list[tuple[int, int, str]] = []
    refs = references(spark, text, new.functions, args)
    for ref in sorted(refs, key=lambda one: isinstance(one, RelationRef)):
        view = new.table(ref) if isinstance(ref, RelationRef) else new.call(ref) if new.call is not None else None
        if view is None:
            continue
        edits.append((ref.start, ref.stop, view))
        if new.batches and ref.stream is not None:
            edits.append((*ref.stream, ""))
        if isinstance(ref, RelationRef) and ref.travel is not None and is_plain(view):
            edits.append((*ref.travel, ""))
        if isinstance(ref, RelationRef) and ref.alias_at is not None:
            edits.append((ref.alias_at, ref.alias_at, f" AS {quoted(new.alias(ref))}"))
    return Edits(text, tuple(edits))


def rewrite(spark: SparkSession, sql: str, replacement: Callable[[RelationRef], str | None], args: Mapping[str, Any] | None = None) -> str:
    """Return the text with each table name replaced by what `replacement` gives for it; None leaves a name as it is."""
    return replace_references(spark, sql, ReferenceReplacements(replacement), args).applied()


def is_query(spark: SparkSession, sql: str) -> bool:
    """Whether `sql` only reads: no command, no insert, no script, in no part of it. Raises ParseException like `references`."""
    if _QUERY.match(sql) and not may_have(sql, ("INSERT",)):
        return True  # a statement that begins like this and inserts nothing is a query; if it is none at all, running it says so
    return only_reads(spark, parsed(spark, sql))


def has_subqueries(spark: SparkSession, sql: str) -> bool:
    """Whether an expression of a query holds a query, which may name columns of the one around it. Raises like `references`."""

    def holds(node: Any) -> bool:
        if node.subqueries().size():
            return True
        below = items(node.children())
        if str(node.nodeName()) == "UnresolvedWith":
            below += [definition._2() for definition in items(node.cteRelations())]
        return any(map(holds, below))

    return may_have(sql, ("SELECT",)) and holds(parsed(spark, sql))


@dataclass(frozen=True)
class _Surroundings:
    """What stands above a node: the visible CTE names (lower case), whether an alias follows, where the decorations end, the node of a
    clause that asks for a version."""

    ctes: frozenset[str] = frozenset()
    aliased: bool = False
    end: int = 0
    travel: Any = None


class _PlanWalk:
    """One walk over a parsed plan, its subqueries and its common table expressions.

    `functions`: calls to report, and not to enter. `args`: the values of the text's named parameters.
    """

    def __init__(
        self, spark: SparkSession, text: str, functions: frozenset[str] = frozenset(), args: Mapping[str, Any] | None = None
    ) -> None:
        self.spark, self.text, self.functions, self.args = spark, text, functions, dict(args) if args else None

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """The text's tokens, read only where a node does not say where its parts stand: most texts need none, nor sqlglot."""
        return plain_tokens(self.text)

    def index(self, position: int) -> int:
        """The index of the first token that begins at a position or after it."""
        return bisect.bisect_left(self.tokens, position, key=lambda token: token.start)

    def sees(self, at: int, *words: str) -> bool:
        """Whether these words or signs begin at a token's index."""
        return [token.upper for token in self.tokens[at : at + len(words)]] == list(words)

    def refs(self, node: Any, above: _Surroundings = _Surroundings()) -> Iterator[RelationRef | CallRef]:
        kind = str(node.nodeName())
        if kind == "UnresolvedTableValuedFunction" and self.functions:
            name = ".".join(str(part) for part in items(node.name())).lower()
            if name in self.functions:
                yield self._call_reference(node, name)
                return
        if kind in ("UnresolvedRelation", "PlanWithUnresolvedIdentifier"):
            yield from self._relation_reference(node, kind, above)
            return
        if kind == "UnresolvedWith":
            yield from self._references_of_with(node, above.ctes)
            return
        below = self._surroundings_below(node, kind, above)
        for subquery in items(node.subqueries()):
            yield from self.refs(subquery, _Surroundings(above.ctes))
        children = [node.relation()] if kind == "RelationTimeTravel" else items(node.children())
        for child in children:
            yield from self.refs(child, below)

    def _surroundings_below(self, node: Any, kind: str, above: _Surroundings) -> _Surroundings:
        if kind == "SubqueryAlias":
            return _Surroundings(above.ctes, aliased=True)
        if kind in _DECORATIONS:
            travel = node if kind == "RelationTimeTravel" else above.travel
            return _Surroundings(above.ctes, above.aliased, max(above.end, _text_span(node)[1]), travel)
        return _Surroundings(above.ctes)

    def _references_of_with(self, node: Any, outer: frozenset[str]) -> Iterator[RelationRef | CallRef]:
        visible = outer
        recursive = bool(node.allowRecursion())
        for definition in items(node.cteRelations()):
            name = str(definition._1()).lower()
            yield from self.refs(definition._2(), _Surroundings(visible | {name} if recursive else visible))
            visible = visible | {name}
        yield from self.refs(node.child(), _Surroundings(visible))

    def _relation_reference(self, node: Any, kind: str, above: _Surroundings) -> Iterator[RelationRef]:
        start, end = _text_span(node)
        streaming = kind == "UnresolvedRelation" and bool(node.isStreaming())
        stream = self._word_stream(start) if streaming else None
        start, stop = self._name_span(start) if streaming else (start, end)
        options: Mapping[str, str] = {}
        if kind == "UnresolvedRelation":
            parts = tuple(str(node.multipartIdentifier().mkString("\0")).split("\0"))
            options = _options_of_with(node.options())
        else:
            parts = self._evaluated_identifier(self.text[start:stop])
        if len(parts) == 1 and parts[0].lower() in above.ctes:
            return
        after = max(above.end, end if streaming or (kind == "UnresolvedRelation" and not options) else self._after_options(end))
        options, travel = self._at_version(above.travel, stop, options)
        if above.aliased or self._is_behind_table(start):
            yield RelationRef(parts, start, stop, streaming, has_alias=True, options=options, travel=travel, stream=stream)
            return
        yield RelationRef(parts, start, stop, streaming, has_alias=False, alias_at=after, options=options, travel=travel, stream=stream)

    def _at_version(self, node: Any, name_end: int, options: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[int, int] | None]:
        """The options with those of a clause `VERSION AS OF …` after the name, and the span of that clause; None where there is none."""
        if node is None:
            return options, None
        at = self.index(name_end)
        at += self.sees(at, "FOR")
        if not any(self.sees(at, word, "AS", "OF") for word in _VERSIONS):
            return options, None
        value = self.tokens[at + 3]
        end = value.stop if value.kind in ("number", "string") else value.start
        if node.version().isDefined():
            return {**options, "versionAsOf": str(node.version().get())}, (name_end, end)
        end = max(end, _text_span(node.timestamp().get())[1])
        row = self.spark.sql(f"SELECT CAST({self.text[value.start : end]} AS STRING)", self.args).first()
        return {**options, "timestampAsOf": str(row[0]) if row else ""}, (name_end, end)

    def _is_behind_table(self, position: int) -> bool:
        """Whether `TABLE` or `TABLE (` stands before a position."""
        if not may_have(self.text[:position], ("TABLE",)):
            return False
        at = self.index(position)
        return self.sees(at - 1, "TABLE") or self.sees(at - 2, "TABLE", "(")

    def _word_stream(self, start: int) -> tuple[int, int] | None:
        """The span of the word STREAM, if it begins at `start`."""
        at = self.index(start)
        return (self.tokens[at].start, self.tokens[at].stop) if self.sees(at, "STREAM") else None

    def _name_span(self, start: int) -> tuple[int, int]:
        """The span of the name in `STREAM(name)` or `STREAM name`, which begins at `start`."""
        at = self.index(start)
        at += self.sees(at, "STREAM")
        at += self.sees(at, "(")
        begin = self.tokens[at].start
        if self.sees(at, "IDENTIFIER", "("):
            return begin, self.tokens[closing(self.tokens, at + 1)].stop
        end = name_end(self.tokens, at)
        return begin, self.tokens[end - 1].stop if end > at else begin

    def _after_options(self, position: int) -> int:
        """The end of a `WITH (…)` clause that follows `position`, else `position`."""
        at = self.index(position)
        return self.tokens[closing(self.tokens, at + 1)].stop if self.sees(at, "WITH", "(") else position

    def _call_reference(self, node: Any, name: str) -> CallRef:
        start, _ = _text_span(node)
        streaming = bool(node.isStreaming())
        stream = self._word_stream(start) if streaming else None
        if streaming:
            start, _ = self._name_span(start)
        opening = name_end(self.tokens, self.index(start))
        end = closing(self.tokens, opening)
        return CallRef(name, start, self.tokens[end].stop, streaming, tuple(self._call_arguments(opening, end)), stream)

    def _call_arguments(self, opening: int, end: int) -> Iterator[tuple[str | None, str]]:
        """The arguments of a call, between the indexes of its parentheses: split at its own commas."""
        begin = at = opening + 1
        while at <= end:
            if at == end or self.tokens[at].upper == ",":
                if at > begin:
                    yield self._call_argument(begin, at)
                begin = at + 1
            at = (closing(self.tokens, at) if self.tokens[at].upper in ("(", "[") else at) + 1

    def _call_argument(self, begin: int, end: int) -> tuple[str | None, str]:
        named = self.tokens[begin].is_name and self.sees(begin + 1, "=>") and begin + 2 < end
        first = begin + 2 if named else begin
        return self.tokens[begin].value if named else None, self.text[self.tokens[first].start : self.tokens[end - 1].stop]

    def _evaluated_identifier(self, identifier: str) -> tuple[str, ...]:
        inner = identifier[plain_tokens(identifier)[1].start :]
        row = self.spark.sql(f"SELECT CAST({inner} AS STRING)", self.args).first()
        return split_name(str(row[0])) if row else ()


def _options_of_with(options: Any) -> Mapping[str, str]:
    """The options of `WITH (…)`; py4j ends each walk over a Java map with an exception, so an empty one is not walked."""
    return {} if options.isEmpty() else dict(options.asCaseSensitiveMap())


def _text_span(node: Any) -> tuple[int, int]:
    """Half-open character span of a node's origin; (0, 0) when it has none."""
    found = _ORIGIN.match(str(node.origin().toString()))  # one round trip for both ends
    return (int(found["start"]), int(found["stop"]) + 1) if found else (0, 0)


def names_of(refs: Sequence[RelationRef]) -> list[str]:
    """The dotted names of the references, quoted where needed, each once, in order."""
    return list(dict.fromkeys(dotted(ref.parts) for ref in refs))
