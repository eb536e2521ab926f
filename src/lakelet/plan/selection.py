"""What an update was asked for: which datasets it refreshes and resets (RE-3, RE-4, decision 5), other conditions of flows (RP-5).

In: a request and the graph. Out: a `Selection` of keys.

Names may be selectors. `agent*` is a glob, `+name` a dataset with everything it reads, `name+` with everything that reads it; a number
beside the plus limits the steps: `1+name`, `name+2`. A glob is compared with as many parts of a name as it has. `gold.*` selects the
tables of the schema gold, or of the layer gold if there is no such schema. `state:modified` selects the datasets whose definition
changed, `state:modified:PATH` those that differ from a saved manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace, several_names
from lakelet.language.model import Definitions, Kind, Replacement
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.plan.definition_changes import STATE
from lakelet.plan.graph import LAYERS, Graph, layers


@dataclass(frozen=True)
class Request:
    """Request for one update; names have one to three parts. `reset_checkpoint` names flows, the others datasets.

    `select` takes globs and directions too (`lakelet.plan.selection`). `replace_where`: (name of a flow, condition), for this update alone.
    A text in place of several names is read as the command line reads it: `select="a,b"`.
    """

    select: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False
    reset_checkpoint: tuple[str, ...] = ()
    refresh_failed: bool = False
    replace_where: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for field in ("select", "full_refresh", "reset_checkpoint"):
            given: str | Sequence[str] = getattr(self, field)
            object.__setattr__(self, field, several_names(given))


EVERYTHING = Request()
"""The usual request: refresh all, reset nothing."""


@dataclass(frozen=True)
class Selection:
    """Keys of the stored datasets to refresh, and of those among them to reset first.

    `checkpoints`: names of flows that read their sources again while the tables keep their rows. `protected`: datasets that were to be
    reset with all others, and must not be.
    """

    refresh: frozenset[str]
    reset: frozenset[str]
    checkpoints: frozenset[str] = frozenset()
    protected: frozenset[str] = frozenset()

    def without_resets(self) -> Selection:
        """The same for another attempt: what was reset is not reset again, its source may have moved on."""
        return Selection(self.refresh, frozenset())

    def without(self, keys: frozenset[str]) -> Selection:
        """The same without some datasets."""
        return replace(self, refresh=self.refresh - keys, reset=self.reset - keys)


def select(
    request: Request,
    graph: Graph,
    namespace: Namespace,
    *,
    kept: frozenset[str] = frozenset(),
    failed: frozenset[str] = frozenset(),
    modified: Mapping[str, frozenset[str]] | None = None,
) -> Selection:
    """Resolve the request against the graph.

    With `select`, only these (and the ones to reset) take part; else all do. `kept`: keys of datasets that must not be reset (table
    property pipelines.reset.allowed=false); `full_refresh_all` leaves them out.
    `failed`: the datasets that `refresh_failed` means. `modified`: the keys of the datasets that each of `states_of` selects.
    Raises UNKNOWN_SELECTION, and USAGE if `full_refresh_all` or `refresh_failed` comes with names or `full_refresh` names one of `kept`.
    """
    if request.full_refresh_all and (request.select or request.full_refresh):
        raise LakeletError("USAGE", "--full-refresh-all goes neither with --select nor with --full-refresh")
    if request.refresh_failed and request != Request(refresh_failed=True):
        raise LakeletError("USAGE", "--refresh-failed goes with no other selection and no reset", todo="Run it alone.")
    stored = frozenset(node.name.key for node in graph.nodes if node.kind is not Kind.VIEW)
    reset = stored - kept if request.full_refresh_all else _keys(request.full_refresh, "--full-refresh", graph, namespace, stored)
    if reset & kept:
        raise LakeletError(
            "USAGE",
            f"--full-refresh names {graph.by_key[min(reset & kept)].name}, whose property pipelines.reset.allowed is false",
            todo="Its rows may have no source any more. Take the property away first if they may be lost.",
        )
    selected = _selected(request.select, graph, namespace, stored, modified or {})
    flows = _flows(request.reset_checkpoint, graph, namespace)
    if request.refresh_failed:
        return Selection(refresh=failed & stored, reset=reset)
    protected = kept & stored if request.full_refresh_all else frozenset()
    refresh = (selected | reset | frozenset(flows.values())) if request.select else stored
    _check_parts(request, graph, namespace, refresh)
    return Selection(refresh, reset, frozenset(flows), protected)


def with_conditions(found: Definitions, conditions: Sequence[tuple[str, str]], namespace: Namespace) -> Definitions:
    """The definitions with other conditions of REPLACE WHERE flows, for one update (RP-5). `conditions`: (name of a flow, SQL text).

    Raises UNKNOWN_SELECTION for a name that means no such flow.
    """
    if not conditions:
        return found
    flows = {flow.name.lower(): flow for flow in found.flows}
    for name, condition in conditions:
        flow = flows.get(name.lower()) or flows.get(_resolved(name, namespace))
        if flow is None or not flow.replaces_part:
            raise LakeletError(
                "UNKNOWN_SELECTION",
                f"--replace-where names {name!r}, which is {'no flow of this pipeline' if flow is None else 'no REPLACE WHERE flow'}",
                nearest=nearest_names(name, [flow.name for flow in found.flows if flow.replaces_part]),
                todo="List all flows: lakelet plan",
            )
        flows[flow.name.lower()] = replace(flow, replaces=Replacement(where=in_spark_sql(condition)))
    return replace(found, flows=tuple(flows.values()))


def _check_parts(request: Request, graph: Graph, namespace: Namespace, refresh: frozenset[str]) -> None:
    """Raise USAGE for a condition of a flow that is named twice, or whose table is not selected: it would have no effect."""
    targets = {flow.lower(): node.name.key for node in graph.nodes for flow in node.flows}
    seen: set[str] = set()
    for name, _ in request.replace_where:
        flow = name.lower() if name.lower() in targets else _resolved(name, namespace)
        if flow in seen:
            raise LakeletError("USAGE", f"--replace-where names {name!r} twice", todo="Join the conditions with OR.")
        seen.add(flow)
        if targets.get(flow) not in refresh:
            raise LakeletError("USAGE", f"--replace-where names {name!r}, which --select leaves out", todo="Select its table too.")


def below_failed(graph: Graph, *, not_done: frozenset[str], excluded: frozenset[str]) -> frozenset[str]:
    """Return the tables that an update did not finish and everything downstream, without those that it left out."""
    return frozenset(graph.downstream(not_done & graph.by_key.keys())) - excluded


def _flows(names: Sequence[str], graph: Graph, namespace: Namespace) -> dict[str, str]:
    """Flow → key of its target, for the flows whose checkpoints the update must clear."""
    streaming = {flow: node.name.key for node in graph.nodes if node.kind in (Kind.STREAMING_TABLE, Kind.SINK) for flow in node.flows}
    by_key = {flow.lower(): flow for flow in streaming}
    found = {}
    for name in names:
        flow = by_key.get(name.lower()) or by_key.get(_resolved(name, namespace))
        if flow is None:
            node = graph.by_key.get(_resolved(name, namespace))
            what = f"a {node.kind.value.replace('_', ' ')}, which has no checkpoint" if node else "no flow of this pipeline"
            raise LakeletError(
                "UNKNOWN_SELECTION",
                f"--reset-checkpoint names {name!r}, {what}",
                nearest=nearest_names(name, streaming),
                todo="List all flows: lakelet plan",
            )
        found[flow] = streaming[flow]
    return found


def _resolved(name: str, namespace: Namespace) -> str:
    try:
        return namespace.resolve(name).key
    except ValueError:
        return name.lower()


def forgotten(request: Request, keys: Iterable[str], namespace: Namespace, *, kept: frozenset[str]) -> frozenset[str]:
    """Those of `keys` whose stored columns and kind do not bind the update, because it resets them; names are checked by `select`."""
    if request.full_refresh_all:
        return frozenset(keys) - kept
    named = set()
    for name in request.full_refresh:
        with suppress(ValueError):
            named.add(namespace.resolve(name).key)
    return frozenset(keys) & named - kept


def refuse_in_continuous(request: Request) -> None:
    """Raise USAGE for a request of some datasets only, or for once: a continuous update keeps them all up to date (RE-16)."""
    given = {"--select": request.select, "--refresh-failed": request.refresh_failed, "--replace-where": request.replace_where}
    option = next((name for name, value in given.items() if value), None)
    if option is not None:
        raise LakeletError(
            "USAGE",
            f"{option} does not go with a continuous update",
            todo="Add --triggered: the update then ends when the selected datasets are up to date.",
        )


def states_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the selectors among some texts of `--select` that mean changed datasets, without their directions."""
    names = (parsed(text).name for text in texts)
    return tuple(dict.fromkeys(name for name in names if name.startswith(STATE)))


def _selected(
    texts: Sequence[str], graph: Graph, namespace: Namespace, stored: frozenset[str], modified: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Return the keys of the stored datasets that `--select` names, by name, glob or direction in the graph. Raises UNKNOWN_SELECTION."""
    found: set[str] = set()
    for text in texts:
        selector = parsed(text)
        if selector.name.startswith(STATE):
            found |= stored & followed(selector, modified[selector.name] & graph.by_key.keys(), graph)
            continue
        if selector.is_plain or _resolved(text, namespace) in stored:
            found |= _keys((text,), "--select", graph, namespace, stored)
            continue
        # Directions may start at a view, which itself is not refreshed.
        everything = frozenset(graph.by_key)
        start = matching(selector.name, graph) if selector.is_glob else _keys((selector.name,), "--select", graph, namespace, everything)
        chosen = stored & followed(selector, start, graph)
        if not chosen:
            raise LakeletError(
                "UNKNOWN_SELECTION",
                f"--select names {text!r}, which matches no table of this pipeline",
                nearest=nearest_names(selector.name.strip("*"), [str(graph.by_key[k].name) for k in sorted(stored)]),
                todo="List all names: lakelet graph",
            )
        found |= chosen
    return frozenset(found)


def _keys(names: Sequence[str], flag: str, graph: Graph, namespace: Namespace, stored: frozenset[str]) -> frozenset[str]:
    found = set()
    for name in names:
        try:
            key = namespace.resolve(name).key
        except ValueError as problem:
            raise LakeletError("UNKNOWN_SELECTION", f"{flag}: {problem}") from None
        if key not in stored:
            known = [str(graph.by_key[k].name) for k in sorted(stored)]
            what = "a view, which is never stored" if key in graph.by_key else "no table of this pipeline"
            raise LakeletError(
                "UNKNOWN_SELECTION",
                f"{flag} names {name!r}, {what}",
                nearest=nearest_names(name, known),
                todo="List all names: lakelet graph",
            )
        found.add(key)
    return frozenset(found)


_FORM = re.compile(r"(?P<up>(?P<up_steps>\d*)\+)?(?P<name>.+?)(?P<down>\+(?P<down_steps>\d*))?")


@dataclass(frozen=True)
class Selector:
    """One text of `--select`. `up`, `down`: how many steps to follow what it reads and what reads it; None: to the end; 0: not at all."""

    name: str
    up: int | None = 0
    down: int | None = 0

    @property
    def is_glob(self) -> bool:
        return any(character in self.name for character in "*?[")

    @property
    def is_plain(self) -> bool:
        """Return whether it is only a name."""
        return not self.is_glob and self.up == 0 and self.down == 0


def parsed(text: str) -> Selector:
    """Read one text. A name in back quotes may contain any character."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match["name"].startswith("`") != match["name"].endswith("`"):
        return Selector(text)
    return Selector(match["name"], _steps(match["up"], match["up_steps"]), _steps(match["down"], match["down_steps"]))


def _steps(direction: str | None, number: str | None) -> int | None:
    if direction is None:
        return 0
    return int(number) if number else None


def matching(glob: str, graph: Graph) -> set[str]:
    """Return the keys of the datasets that match a glob, views included."""
    pattern = glob.lower().split(".")
    found = {key for key in graph.by_key if _matches(key.split("."), pattern)}
    if found or len(pattern) != 2 or pattern[0] not in LAYERS:
        return found
    inputs = {key: [i.key for i in node.inputs] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    return {key for key in graph.by_key if layer[key] == pattern[0] and fnmatchcase(key.split(".")[-1], pattern[1])}


def _matches(parts: list[str], pattern: list[str]) -> bool:
    last = parts[-len(pattern) :]
    return len(last) == len(pattern) and all(fnmatchcase(part, one) for part, one in zip(last, pattern, strict=True))


def followed(selector: Selector, keys: Iterable[str], graph: Graph) -> set[str]:
    """Return `keys` and what the directions of the selector add to them."""
    start = set(keys)
    return start | graph.upstream(start, selector.up) | graph.downstream(start, selector.down)


__all__ = [
    "EVERYTHING",
    "Request",
    "Selection",
    "Selector",
    "below_failed",
    "followed",
    "forgotten",
    "matching",
    "parsed",
    "refuse_in_continuous",
    "select",
    "states_of",
    "with_conditions",
]
