"""Loads one pipeline file under a registry and answers its reads from given data frames.

What is put in place (the modules `dlt` and `pyspark.pipelines`, the import path, pyspark's reading methods) is there only while the file
loads and while one of its functions runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, nearest_names
from lakelet.base.names import Namespace, all_quoted
from lakelet.base.patching import patched_with
from lakelet.base.user_code import caller_location
from lakelet.language.api import dlt_modules
from lakelet.language.dbutils import InjectedNames
from lakelet.language.declaration_checks import with_computed
from lakelet.language.import_paths import ImportPath
from lakelet.language.loader import sql_into
from lakelet.language.model import Dataset, Definitions, Expectation
from lakelet.language.notebook import SourceRunner
from lakelet.language.registry import Registry, reading, recording
from lakelet.language.sql_text.table_names import ReferenceReplacements, RelationRef, has_subqueries, replace_references

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


__tracebackhide__ = True

_ROOT_MARKS = ("databricks.yml", "databricks.yaml", "pyproject.toml", ".git")


class FunctionsByName(dict[str, Any]):
    """A dictionary whose missing names raise UNKNOWN_DATASET with the nearest one."""

    def __missing__(self, name: str) -> Any:
        raise LakeletError("UNKNOWN_DATASET", f"the file declares no {name!r}", nearest=nearest_names(name, self))


@dataclass(frozen=True)
class PipelineFunctions:
    """Declarations of one pipeline file, by dataset name (flows by flow name).

    Attributes:
        functions: the query functions; called without arguments they return a DataFrame made from the given inputs.
        datasets: what the decorators recorded: kind, comment, partition and cluster columns, properties.
        expectations: per dataset its rules by name; each has `text` and `action`.
        module: the file's own names, for the plain functions in it.
        definitions: everything that it declares, flows included.
        inside: gives a plain function of the file what the query functions have: the given inputs and the modules `dlt` and `dp`.
    """

    functions: Mapping[str, Callable[[], DataFrame]]
    datasets: Mapping[str, Dataset]
    expectations: Mapping[str, Mapping[str, Expectation]]
    module: ModuleType
    definitions: Definitions
    inside: Callable[[Callable[..., Any]], Callable[..., Any]]

    def __getitem__(self, name: str) -> Callable[[], DataFrame]:
        return self.functions[name]


def load_file(
    file: Path, *, spark: SparkSession, conf: Mapping[str, str] | None = None, inputs: Mapping[str, DataFrame] | None = None
) -> PipelineFunctions:
    """Run `file` as a pipeline source and return its functions, ready to be called on `inputs`.

    Raises LakeletError for contradicting definitions; an exception of the file itself comes through as it is.
    """
    return load_answered(file.resolve(), spark=spark, conf=conf or {}, answers=InputFrames(Namespace(), inputs or {}))


def load_answered(file: Path, *, spark: SparkSession, conf: Mapping[str, str], answers: InputFrames) -> PipelineFunctions:
    """`load_file` with inputs of the caller's kind."""
    registry = Registry(answers.namespace)
    tools = InjectedNames({"spark": spark}, note=registry.notices.append, parameters=conf)

    @contextmanager
    def pipeline() -> Iterator[None]:
        with ExitStack() as stack:
            for part in (
                ImportPath([project_root(file)], [file]).installed(),
                dlt_modules(),
                tools.importable(),
                recording(registry),
                reading(answers),
                answering(answers, conf),
            ):
                stack.enter_context(part)
            yield

    with pipeline(), tools.while_loading(), closing(SourceRunner(tools.frame, sql_into(spark, conf), [file])) as sources:
        module, _ = sources.run(file)
    if registry.errors:
        raise DefinitionErrors(registry.errors)
    # What this adds to `registry.errors` concerns all files together, e.g. a flow into a table that another file defines.
    found = with_computed(registry.definitions())
    return PipelineFunctions(
        functions=FunctionsByName({_short(f.name): _inside(pipeline, f.query) for f in found.flows}),
        datasets=FunctionsByName({d.name.name: d for d in found.datasets}),
        expectations=FunctionsByName({d.name.name: {e.name: e for e in d.expectations} for d in found.datasets}),
        module=module,
        definitions=found,
        inside=functools.partial(_inside, pipeline),
    )


def project_root(file: Path) -> Path:
    """The folder that pipeline files import from: the nearest one above `file` that looks like a project, else the file's own."""
    for folder in file.parents:
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return file.parent


class InputFrames:
    """The data frames a test gives: by dataset name, with or without `LIVE.`, or by the folder that files would be loaded from."""

    reads_batches = True
    """A stream is answered by a frame that is none."""

    def __init__(self, namespace: Namespace, frames: Mapping[str, DataFrame]) -> None:
        self.namespace, self._frames = namespace, frames
        self._names = {namespace.resolve(name).key: name for name in frames if "/" not in name}

    def found(self, name: str) -> DataFrame | None:
        """The frame of a name, or None."""
        key = self.namespace.resolve(name).key
        return self._frames[self._names[key]] if key in self._names else None

    def batch(self, name: str) -> DataFrame:
        """Raises UNKNOWN_DATASET if the test gave no frame of this name."""
        frame = self.found(name)
        if frame is None:
            raise LakeletError(
                "UNKNOWN_DATASET",
                f"the function reads {name!r}, which is not among the inputs of this test",
                where=caller_location(),
                nearest=nearest_names(name, self._frames),
                todo=f'Give it: load_pipeline(..., inputs={{"{name}": data_frame}}).',
            )
        return frame

    def stream(self, name: str, options: Mapping[str, str]) -> DataFrame:
        """The same small frame: in a test everything there is arrives in one batch."""
        return self.batch(name)

    def table(self, name: str, *, streaming: bool) -> DataFrame:
        return self.batch(name)

    def batch_or_stream(self, name: str) -> DataFrame:
        return self.batch(name)

    def sql(self, spark: SparkSession, text: str, run: Callable[[str], Any]) -> Any:
        """Run SQL text on the given frames; each is a temporary view while the text is analysed. STREAM means the same small frame."""
        from lakelet.spark.names.sql_rewriting import ColumnPrefixes

        views: dict[str, DataFrame] = {}
        prefixes = ColumnPrefixes(lambda text: has_subqueries(spark, text))

        def view(ref: RelationRef) -> str:
            name = f"__lakelet_input_{len(views)}"
            views[name] = self.batch(all_quoted(ref.parts))
            views[name].createOrReplaceTempView(name)
            if not ref.has_alias:
                prefixes.add(ref.parts, self.namespace.resolve(all_quoted(ref.parts)))
            return name

        try:
            return prefixes.run(lambda alias: replace_references(spark, text, ReferenceReplacements(view, alias=alias, batches=True)), run)
        finally:
            for name in views:
                spark.catalog.dropTempView(name)

    def folder(self, path: object) -> DataFrame | None:
        return self._frames.get(path) if isinstance(path, str) else None


@contextmanager
def answering(inputs: InputFrames, conf: Mapping[str, str]) -> Iterator[None]:
    """pyspark's reads and `spark.conf.get` answer from `inputs` and `conf`.

    The methods are replaced on the classes, so that the injected session is a real one and helper modules see the same. Raises
    PROCESS_BUSY while another thread works on a pipeline.
    """
    from lakelet.spark.patches.inputs_of_tests import GIVEN_INPUTS, InputsOfTest
    from lakelet.spark.patches.update_context import only_pipeline

    with only_pipeline(nested=True), patched_with(GIVEN_INPUTS, InputsOfTest(inputs, conf)):
        yield


def _inside(pipeline: Callable[[], Any], query: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(query)
    def call(*args: Any, **kwargs: Any) -> Any:
        with pipeline():
            return query(*args, **kwargs)

    return call


def _short(flow: str) -> str:
    return flow.rsplit(".", 1)[-1]
