"""Analyses the pipeline before anything runs, and single datasets again while flows run, on what is stored at that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame

from lakelet.analysis.analyzed import Analysis, AnalyzedDataset
from lakelet.analysis.analyzer import Analyzer
from lakelet.analysis.unchecked import unchecked
from lakelet.autoloader import register
from lakelet.autoloader.metadata import dry_stream
from lakelet.autoloader.spec import SourceSpec
from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.base.patching import patched_with
from lakelet.cdc import identity
from lakelet.files.delta_log import TableLog
from lakelet.flows import once_markers
from lakelet.flows.analysed_flows import FlowNotices, FlowSources
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import plain_reader
from lakelet.language.loader import Loaded
from lakelet.language.model import Dataset, Flow
from lakelet.language.registry import Notice, name_left_out
from lakelet.spark.launch.forks import start_ahead
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.patches.session import CALL_SITES
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.root import Storage, StoredDataset


@dataclass(frozen=True)
class Analyses:
    """Inputs of every analysis of a pipeline. `sources`, `notices`: filled with what it finds out about the flows."""

    spark: UpdateSession
    storage: Storage
    catalog: Catalog
    parameters: Mapping[str, str]
    sources: FlowSources
    notices: FlowNotices

    def pipeline(self, found: Loaded, unbound: Set[str], *, checking: bool = False) -> Analysis:
        """Analyse all datasets. `unbound`: keys of those for which it does not count what is stored of them. Raises DefinitionErrors.

        `checking`: also for functions that raise (decision 0044); else they fail their branch of the update.
        """
        register(self.spark, wrap=False)
        unbound = unbound | found.duplicates
        stored = {key: d for key, d in self.storage.registry().datasets.items() if key not in unbound}
        analyzer = self._analyzer(stored, ahead=not checking)
        try:
            with patched_with(CALL_SITES):
                result = analyzer.run(found.errors, lost=found.lost, checking=checking)
        except DefinitionErrors as problem:
            for flow, notices in analyzer.found.notices.items():
                self.notices.add(flow, notices)
            told = dict.fromkeys([*found.notices, *self.notices, *unchecked(analyzer.found)])
            errors = sorted(self._with_others(problem.errors, found, stored), key=_place)
            for error in errors:
                if error not in found.errors:
                    name_left_out(error, found.notices)
            raise DefinitionErrors(errors, [f"{notice.where}: {notice.text}" for notice in told]) from None
        for failure in result.failures.values():
            name_left_out(failure, found.notices)
        for flow, notices in analyzer.found.notices.items():
            self.notices.add(flow, notices)
        return result

    def _with_others(self, errors: Sequence[LakeletError], found: Loaded, stored: Mapping[str, StoredDataset]) -> Sequence[LakeletError]:
        """The errors of a pipeline, and those in the further definitions of a name that has several.

        A dataset that is right with one of them has no error: that would be a consequence. Of the others the errors count that they have
        with the definition with which the fewest are wrong.
        """
        passes = [errors]
        for definitions in found.others:
            other = replace(self, catalog=self.catalog.other(definitions), notices=FlowNotices())
            try:
                with patched_with(CALL_SITES):
                    other._analyzer(stored).run(found.errors, lost=found.lost, checking=True)
            except DefinitionErrors as more:
                passes.append(more.errors)
        twice = {str(self.catalog.datasets[key].name) for key in found.duplicates}
        own = [[error for error in one if error.dataset in twice] for one in passes]
        broken = [sum(error.code != "EXPECTATION_INVALID" for error in wrong) for wrong in own]  # what reads such a one is not analysed
        sound = [one for one, count in zip(passes, broken, strict=True) if count == min(broken)]
        names = [{error.dataset for error in one} for one in sound]
        best = [error for error in min(sound, key=len) if all(error.dataset in wrong for wrong in names)]
        return list({_facts(error): error for error in chain(best, *own)}.values())

    def fingerprint(self, key: str) -> str | None:
        """That of a materialized view, on the columns that its inputs have now; None if it cannot be analysed."""
        found = self._analyzer(self.storage.registry().datasets).dataset(key)
        return found.flows[0].fingerprint if found else None

    def dataset(self, key: str) -> AnalyzedDataset:
        """One dataset on what is stored now. Raises its first error."""
        analyzer = self._analyzer(self.storage.registry().datasets)
        found = analyzer.dataset(key)
        if found is None:
            problems = [analyzer.found.failures.get(key), *analyzer.found.errors, *analyzer.found.failures.values()]
            raise next((p for p in problems if p is not None), None) or LakeletError("FLOW_FAILED", "it could not be analysed", dataset=key)
        return found

    def _analyzer(self, stored: Mapping[str, StoredDataset], *, ahead: bool = False) -> Analyzer:
        """`ahead`: start the fork server at the first cloudFiles source, for what is analysed will run; Spark reads those in Python."""
        return Analyzer(
            spark=self.spark,
            catalog=self.catalog,
            stored=stored,
            parameters=self.parameters,
            open_source=self._source_to_read if ahead else self._dry_source,
            open_rows=self._rows,
            json_schemas=self.sources.json_schemas,
            has_run=partial(once_markers.has_run, self.storage),
            made_with=partial(identity.made_with, self.storage),
            ever_run=self.storage.registry().last_update is not None,
        )

    def _source_to_read(self, flow: Flow, number: int, spec: SourceSpec, placeholders: Any) -> DataFrame:
        start_ahead()
        return self._dry_source(flow, number, spec, placeholders)

    def _dry_source(self, flow: Flow, number: int, spec: SourceSpec, placeholders: Any) -> DataFrame:
        """A cloudFiles source as analysis sees it: its columns and hidden metadata, nothing read or written."""
        source = self.sources.open(flow, number, spec, dry=True)
        self.sources.add(flow.name, number, spec)
        self.notices.add(flow.name, [Notice(text, spec.where or flow.where) for text in source.notices])
        return dry_stream(source.schema(), lambda schema: placeholders.source(number, schema))

    def _rows(self, dataset: Dataset, jreader: Any) -> DataFrame | None:
        """The rows that a dataset has now, read with the options of `jreader`; None where it has no table yet."""
        path = self.storage.table_path(dataset.name)
        if TableLog(path).version() < 0:
            return None
        reader = jreader or plain_reader(self.spark)
        return loaded(self.spark, reader, "delta", str(path))


def _facts(error: LakeletError) -> tuple[str | None, ...]:
    """What two errors have in common that are the same one."""
    return error.code, str(error.where), error.what, error.why


def _place(error: LakeletError) -> tuple[str, int, int, int]:
    """Where an error is, so that those of a file stand in the order of its lines."""
    where = error.where
    return ("", 0, 0, 0) if where is None else (where.file, where.cell or 0, where.line, where.column or 0)
