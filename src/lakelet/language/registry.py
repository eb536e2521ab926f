"""Where declarations go: the registry that is active while source files are loaded.

The functions of `api` neither know nor care what happens to a declaration; they hand it to the active registry. The runtime, the
pytest plugin and the tests each make one active for the time of a `with` block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from lakelet.base import user_code
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace, TableName
from lakelet.base.redaction import remember_secrets
from lakelet.base.user_code import caller_location
from lakelet.language.failed_parts import ANYTHING, FailedParts
from lakelet.language.model import Dataset, Definitions, Expectation, Flow, Hook
from lakelet.language.sql_text.tokens import adjacent
from lakelet.language.targets import idle_sinks, target_problems

_NUMBERS = {2: "two", 3: "three", 4: "four"}
"""Numbers of definitions in words."""


@dataclass(frozen=True)
class Notice:
    """Something accepted that has no effect here; the result cannot differ because of it.

    `magic`: the command of a notebook's cell or line that was left out and may have made what later code needs.
    """

    text: str
    where: Location
    magic: str | None = None


class Reader(Protocol):
    """Answers `dlt.read` and `dlt.read_stream` while a dataset's function runs, and opens the source of a change flow."""

    def batch(self, name: str) -> Any: ...

    def stream(self, name: str, options: dict[str, str]) -> Any: ...

    def table(self, name: str, *, streaming: bool) -> Any: ...

    def batch_or_stream(self, name: str) -> Any: ...


class Registry:
    """Collects datasets and flows; remembers every contradiction instead of stopping at the first.

    `failed_parts`: the parts of the sources that did not run. A name may have several definitions, which is an error; all are kept,
    so that what is wrong in each is found too.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.notices: list[Notice] = []
        self.errors: list[LakeletError] = []
        self.failed_parts = FailedParts()
        self._datasets: dict[str, list[Dataset]] = {}
        self._flows: dict[str, list[tuple[int, Flow]]] = {}  # with the number of the dataset's definition that it came with
        self._hooks: list[Hook] = []
        self._doubled: dict[str, LakeletError] = {}  # by the key of a dataset with several definitions

    def resolve(self, text: str, where: Location) -> TableName:
        """Full name meant by `text`. Raises ARGUMENT_INVALID if it is none."""
        try:
            return self.namespace.resolve(text)
        except ValueError as problem:
            raise LakeletError("ARGUMENT_INVALID", str(problem), where=where) from None

    def add_dataset(self, dataset: Dataset) -> None:
        """Record a dataset. Secrets among its settings are not shown from now on (ST-13)."""
        for settings in (dataset.table_properties, dataset.spark_conf, dataset.sink.options if dataset.sink is not None else {}):
            remember_secrets(settings)
        known = self._datasets.setdefault(dataset.name.key, [])
        if known:
            self._report_doubled([*known, dataset])
        known.append(replace(dataset, expectations=()))
        self.add_expectations(dataset.name, dataset.expectations)

    def _report_doubled(self, definitions: Sequence[Dataset]) -> None:
        """One error for all definitions of a name: a further one replaces the error about those before it."""
        first, second = definitions[:2]
        places = [f"in {definition.where}" for definition in definitions]
        error = LakeletError(
            "DUPLICATE_DATASET",
            f"{_NUMBERS.get(len(definitions), len(definitions))} definitions carry the name {first.name}",
            where=second.where,
            dataset=str(first.name),
            why=f"it is defined {', '.join(places[:-1])} and {places[-1]}",
            todo="Rename or delete all but one of them. None counts until then; the rows of a table that is there stay as they are.",
        )
        if first.name.key in self._doubled:
            self.errors.remove(self._doubled[first.name.key])
        self._doubled[first.name.key] = error
        self.errors.append(error)

    def add_expectations(self, name: TableName, expectations: Sequence[Expectation]) -> None:
        """Add rules to a dataset that is already there; names are unique per dataset (EP-6)."""
        dataset = self._datasets[name.key][-1]
        known = {e.name: e for e in dataset.expectations}
        for expectation in expectations:
            if isinstance(expectation.constraint, str) and adjacent(expectation.constraint, "(", ("SELECT", "WITH")):
                text = f"the rule {expectation.name!r} holds a subquery, which Databricks refuses in expectations"
                self.note(text, expectation.where)
            first = known.get(expectation.name)
            if first is not None:
                self.errors.append(
                    LakeletError(
                        "DUPLICATE_EXPECTATION",
                        f"two expectations are called {expectation.name!r}",
                        where=expectation.where,
                        dataset=str(name),
                        why=f"the first one is in {first.where}: {first.text}",
                        todo="Give each rule of a dataset its own name.",
                    )
                )
                continue
            known[expectation.name] = expectation
        self._datasets[name.key][-1] = replace(dataset, expectations=tuple(known.values()))

    def add_flow(self, flow: Flow) -> None:
        """Record a flow. Secrets among its settings are not shown from now on (ST-13)."""
        remember_secrets(flow.spark_conf)
        known, tables = self._flows.setdefault(flow.name.lower(), []), len(self._datasets.get(flow.target.key, ()))
        known.append((tables - 1, flow))
        if len(known) > 1 and tables < 2:  # else flows of a dataset with two definitions, which is reported
            self.errors.append(
                LakeletError(
                    "DUPLICATE_FLOW",
                    f"two flows are called {flow.name!r}",
                    where=flow.where,
                    dataset=str(flow.target),
                    why=f"the first one is in {known[0][1].where}",
                    todo="Give the flow another name; its name identifies its checkpoint.",
                )
            )

    def add_hook(self, hook: Hook) -> None:
        self._hooks.append(hook)

    def note(self, text: str, where: Location, *, magic: str | None = None) -> None:
        self.notices.append(Notice(text, where, magic))

    def definitions(self, *, complete: bool = True) -> Definitions:
        """Return the declarations, the first of each name, after the checks that need all files. Problems are added to `errors`.

        What seems to be missing and may be in a part that did not run is not reported; without `complete` nothing that seems to be missing.
        """
        result, failed_parts = self._definitions_numbered(0), self.failed_parts if complete else ANYTHING
        self.errors += target_problems(result, failed_parts)
        for sink in idle_sinks(result):
            if not failed_parts.mentions(sink.name.name):
                self.note(f"no flow writes to the sink {sink.name}", sink.where)
        return result

    def others(self) -> tuple[Definitions, ...]:
        """The declarations with the second definition of each name that has several, then with the third, and so on."""
        most = max(map(len, self._datasets.values()), default=1)
        return tuple(self._definitions_numbered(number) for number in range(1, most))

    def duplicates(self) -> frozenset[str]:
        """Keys of the datasets that have several definitions."""
        return frozenset(key for key, known in self._datasets.items() if len(known) > 1)

    def _definitions_numbered(self, number: int) -> Definitions:
        """The declarations with this definition of each name, or the last one."""
        chosen = {key: min(number, len(known) - 1) for key, known in self._datasets.items()}
        datasets = tuple(known[chosen[key]] for key, known in self._datasets.items())
        flows = [self._flow_of(known, chosen) for known in self._flows.values()]
        return Definitions(datasets, tuple(flow for flow in flows if flow is not None), tuple(self._hooks))

    def _flow_of(self, known: Sequence[tuple[int, Flow]], chosen: Mapping[str, int]) -> Flow | None:
        """The flow of a name among those that came with the chosen definitions, or that belong to every definition of their table."""
        wanted = chosen.get(known[0][1].target.key, 0)
        return next((flow for number, flow in known if self._definition_number(number, flow) in (wanted, None)), None)

    def _definition_number(self, number: int, flow: Flow) -> int | None:
        """The number of the table's definition that a flow belongs to: the one above it, or the one in its file; None: to every one."""
        tables = self._datasets.get(flow.target.key, ())
        if flow.default or len(tables) < 2:
            return max(number, 0)
        beside = [at for at, table in enumerate(tables) if table.where.file == flow.where.file]
        return max((at for at in beside if at <= number), default=beside[0] if beside else None)


def name_left_out(error: LakeletError, notices: Sequence[Notice]) -> LakeletError:
    """Add to an error the cells and commands above it in its notebook that were left out: they may have made what it misses."""
    where = error.where
    if where is None:
        return error
    position = (where.cell or 0, where.line)
    found = [n for n in notices if n.magic and n.where.file == where.file and (n.where.cell or 0, n.where.line) < position]
    lines = [f"{notice.magic} at {notice.where} was left out, and with it what it makes" for notice in found]
    error.why = "\n".join(filter(None, [error.why, *lines])) or None
    return error


_registry: ContextVar[Registry | None] = ContextVar("lakelet_registry", default=None)
_names: ContextVar[Namespace | None] = ContextVar("lakelet_names", default=None)


@contextmanager
def recording(registry: Registry) -> Iterator[Registry]:
    """Make `registry` the one that declarations go to."""
    token = _registry.set(registry)
    try:
        yield registry
    finally:
        _registry.reset(token)


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Make `reader` answer the reads of dataset functions in this thread; its `close`, where it has one, is called at the end."""
    token = user_code.active_reader.set(reader)
    try:
        yield
    finally:
        user_code.active_reader.reset(token)
        close = getattr(reader, "close", None)
        if close is not None:
            close()


@contextmanager
def names_in(namespace: Namespace | None) -> Iterator[None]:
    """Complete the names that a query reads in this thread by `namespace`, which `USE` set; None: by the pipeline's own."""
    token = _names.set(namespace)
    try:
        yield
    finally:
        _names.reset(token)


def names_used() -> Namespace | None:
    """Return the namespace that `USE` set for the query of this thread; None where it set none."""
    return _names.get()


def active_registry() -> Registry:
    """The registry declarations go to. Raises OUTSIDE_PIPELINE when there is none."""
    registry = _registry.get()
    if registry is None:
        raise LakeletError(
            "OUTSIDE_PIPELINE",
            "a dataset was declared while no pipeline is being loaded",
            where=caller_location(),
            todo="Run the file with `lakelet run FILE`, or load it in a test with the `load_pipeline` fixture.",
        )
    return registry


def note_look() -> None:
    """Notify the active reader that user code reads data from outside, such as the entries of a folder."""
    looked = getattr(active_reader(), "on_look", None)
    if looked is not None:
        looked()


def active_reader() -> Reader | None:
    """Return the reader of this thread, None outside of dataset functions."""
    return cast("Reader | None", user_code.active_reader.get())
