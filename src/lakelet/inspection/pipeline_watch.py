"""Watches the source files of a pipeline: datasets whose definitions changed (compared by their syntax trees) are validated and previewed.

The code is loaded again from its files each time, with the configuration as it is then; only Java stays. What is changed is found by the
text of the files: that of each definition, and in Python what stands outside of them, which all definitions of the file may use.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import watchfiles

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.config.update_config import PipelineConfig
from lakelet.files import signatures
from lakelet.inspection.preview import Preview, analyzed, preview_of
from lakelet.pipeline import Pipeline
from lakelet.update.opened import LoadedPipeline

QUIET_MS = 25
"""An editor may write several times: the files are read when none changed for so long."""
LONGEST_MS = 100
"""The files are read after so long even if they go on changing."""
ANYWAY_MS = 5_000
"""The files are checked this often without any report: not every file system makes one."""
_WATCHED = (".py", ".sql", ".ipynb", ".yml", ".yaml", ".toml", ".json")
_CELL_COMMENT = "# MAGIC"  # what other languages say in a notebook that is stored as Python
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "tables", "checkpoints"})

Place = tuple[str, int]
"""A file and a line in it, from 1."""


@dataclass(frozen=True)
class SavedFiles:
    """These files were saved, and these datasets are what changed in them; full names."""

    files: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class ValidDefinitions:
    """The pipeline, or one dataset of it, is valid. `seconds` since the files were found changed."""

    dataset: str | None
    datasets: int
    seconds: float


@dataclass(frozen=True)
class PreviewRows:
    """A preview, and the seconds since the files were found changed."""

    preview: Preview
    seconds: float


@dataclass(frozen=True)
class LoadProblem:
    """What is wrong with the pipeline as it was saved. `notices`: warnings, each with its place."""

    errors: tuple[LakeletError, ...]
    notices: tuple[str, ...] = ()


Finding = SavedFiles | ValidDefinitions | PreviewRows | LoadProblem


@dataclass
class PipelineWatch:
    """Watches one pipeline.

    Args:
        configure: reads the configuration as it is now.
        report: gets what is found, in order.
        rows: of each preview.
        turn: while it is open, this process alone uses the session.
        check: called before each look, every few seconds.
        idle: called when no file has changed for some seconds.
    """

    configure: Callable[[], PipelineConfig]
    report: Callable[[Finding], None]
    rows: int
    clock: Callable[[], float] = time.monotonic
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    check: Callable[[], None] = lambda: None
    idle: Callable[[], None] = lambda: None
    _config: PipelineConfig = field(init=False)
    _seen: Mapping[str, str] = field(default_factory=dict)
    _pieces: Mapping[str, str] = field(default_factory=dict)
    _wrong: frozenset[str] = frozenset()  # keys of the datasets that were wrong at the last look
    _whole: bool = False  # all of the pipeline was found valid, but for what changed since

    def begin(self) -> None:
        """Start the session, and validate everything once. Raises what is wrong with the configuration."""
        started = self.clock()
        self._config = config = self.configure()
        self._seen = watched_files(config)
        self._guarded(lambda: self._validate_all(config, started))

    def look(self) -> bool:
        """Look at the files once; whether they changed. What was found is reported by then."""
        if watched_files(self._config) == self._seen:
            return False
        started = self.clock()
        self._guarded(lambda: self._look_again(started))
        return True

    def _look_again(self, started: float) -> None:
        before, self._seen = self._seen, watched_files(self._config)
        self._config = self.configure()
        self._seen = watched_files(self._config)
        files = sorted(name for name in {*self._seen, *before} if self._seen.get(name) != before.get(name))
        self._answer(self._config, files, started)

    def go_on(self) -> None:
        """Look whenever a file of a watched folder changes, until something is raised."""
        while True:
            folders = watched_folders(self._config)
            self.look()
            for changed in _changes(folders):
                self.check()
                if not self.look() and not changed:
                    self.idle()
                if watched_folders(self._config) != folders:
                    break

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            with self.turn():
                work()
        except DefinitionErrors as problem:
            self.report(LoadProblem(tuple(problem.errors), problem.notices))
        except LakeletError as problem:
            self.report(LoadProblem((problem,)))

    def _validate_all(self, config: PipelineConfig, started: float) -> None:
        with Pipeline(config).loaded() as loaded:
            self._pieces = pieces(_places(loaded), _texts(loaded))
        graph = Pipeline(config).validate()
        self._whole = True
        self.report(ValidDefinitions(None, len(graph.nodes), self.clock() - started))

    def _answer(self, config: PipelineConfig, files: Sequence[str], started: float) -> None:
        """Validate and preview what changed and what was wrong; then everything, if no definition changed or the whole was not valid."""
        with Pipeline(config).loaded() as loaded:
            places = _places(loaded)
            now = pieces(places, _texts(loaded))
            keys = changed(self._pieces, now, places, files)
            self.report(SavedFiles(tuple(files), tuple(str(loaded.environment.catalog.datasets[key].name) for key in keys)))
            self._whole = self._whole and bool(keys) and not loaded.loaded.errors
            if not loaded.loaded.errors:  # else all that is wrong is reported together, below
                self._pieces = now
                self._show(loaded, [*keys, *(key for key in now if key in self._wrong and key not in keys)], started)
        if not self._whole:
            self._validate_all(config, started)

    def _show(self, loaded: LoadedPipeline, keys: Iterable[str], started: float) -> None:
        """Validate and preview datasets, each whatever is wrong with the others. Raises DefinitionErrors with all that is wrong."""
        errors: dict[str, LakeletError] = {}  # by text: an error is also one of each dataset that reads the wrong one
        wrong = set()
        for key in keys:
            dataset = loaded.environment.catalog.datasets[key]
            try:
                analyzed(loaded, dataset)
                self.report(ValidDefinitions(str(dataset.name), 1, self.clock() - started))
                self.report(PreviewRows(preview_of(loaded, dataset, self.rows), self.clock() - started))
            except LakeletError as problem:
                several = problem.errors if isinstance(problem, DefinitionErrors) else [problem]
                errors |= {"\n".join(error.lines()): error for error in several}
                if problem.code != "PREVIEW_REFUSED":
                    wrong.add(key)
        self._wrong = frozenset(wrong)
        if errors:
            raise DefinitionErrors(list(errors.values()))


def watched_files(config: PipelineConfig) -> dict[str, str]:
    """The signature of each source and settings file of a project, by path; hidden folders and the storage are left out."""
    found = [str(file) for file in config.files]
    found += [os.path.join(folder, name) for folder, names in _folders(config) for name in names if name.endswith(_WATCHED)]
    return {path: signatures.of_file(path) for path in found}


def watched_folders(config: PipelineConfig) -> frozenset[str]:
    """The folders in which the watched files lie, or may be made."""
    return frozenset({folder for folder, _ in _folders(config)} | {str(file.parent) for file in config.files})


def _folders(config: PipelineConfig) -> Iterator[tuple[str, list[str]]]:
    """Each folder of a project with the names of its files."""
    for root in {config.root, *config.import_roots}:
        for folder, below, names in os.walk(root):
            below[:] = [
                name for name in below if not name.startswith(".") and name not in _LEFT_OUT and Path(folder, name) != config.storage
            ]
            yield folder, names


def _changes(folders: Collection[str]) -> Iterator[bool]:
    """True for each change in these folders, not in those below them, False every five seconds. Ends if they cannot be watched."""
    try:
        for found in watchfiles.watch(
            *sorted(folders),
            watch_filter=None,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=ANYWAY_MS,
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        ):
            yield bool(found)
    except OSError:  # a folder was just removed, or the system has no watch left
        time.sleep(LONGEST_MS / 1000)


def pieces(places: Mapping[str, Collection[Place]], texts: Mapping[str, str]) -> dict[str, str]:
    """A digest of the text of each dataset, by key: of all that a change of counts as one of the dataset."""
    lines: dict[str, set[int]] = {}
    for file, line in chain.from_iterable(places.values()):
        lines.setdefault(file, set()).add(line)
    found = {file: _texts_by_line(texts.get(file, ""), tuple(sorted(starts)), file.endswith(".py")) for file, starts in lines.items()}
    result = {}
    for key, of_key in places.items():
        text = "\0".join(found[file][line] for file, line in sorted(of_key))
        result[key] = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return result


@functools.lru_cache(maxsize=256)  # most files are as they were
def _texts_by_line(text: str, starts: tuple[int, ...], is_python: bool) -> Mapping[int, str]:
    """The text of each definition of a file, by the line that it is known by."""
    found = _statements(text, starts) if is_python else None
    if found is not None:
        return found
    lines = text.splitlines()
    return {start: "\n".join(lines[start - 1 : end - 1]).rstrip() for start, end in zip(starts, (*starts[1:], len(lines) + 1), strict=True)}


def _statements(text: str, starts: Sequence[int]) -> dict[int, str] | None:
    """The text of the decorated function or other statement at each line, and all code of the file outside of them.

    None where that is not known: the text is no Python, or a definition stands in no statement, as SQL in a notebook does.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    spans = [_span(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = {start: [span for span in spans if start in span] for start in starts}
    if not all(around.values()):
        return None
    own = {start: min(found, key=len) for start, found in around.items()}
    code, inside = set(chain.from_iterable(map(_span, tree.body))), set(chain.from_iterable(own.values()))
    lines = text.split("\n")
    rest = [line for number, line in enumerate(lines, 1) if number not in inside and (number in code or line.startswith(_CELL_COMMENT))]
    return {start: "\n".join([*lines[span.start - 1 : span.stop - 1], *rest]) for start, span in own.items()}


def _span(node: ast.stmt) -> range:
    """The lines of a statement, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    return range(first, (node.end_lineno or node.lineno) + 1)


def changed(
    before: Mapping[str, str], now: Mapping[str, str], places: Mapping[str, Collection[Place]], files: Collection[str]
) -> list[str]:
    """The keys of datasets whose text is another one; where there is none, all that the changed files define."""
    other = [key for key in now if now[key] != before.get(key)]
    return other or [key for key, found in places.items() if any(file in files for file, _ in found)]


def _places(loaded: LoadedPipeline) -> dict[str, list[Place]]:
    """Where each dataset and its flows are declared, by key."""
    catalog = loaded.environment.catalog
    return {
        key: [(os.path.abspath(where.file), where.line) for where in {d.where, *(f.where for f in catalog.flows.get(key, ()))}]
        for key, d in catalog.datasets.items()
        if key in catalog.flows
    }


def _texts(loaded: LoadedPipeline) -> dict[str, str]:
    """The text of each source file, by path. A file that was deleted meanwhile has none, and the next check finds that."""
    texts = {}
    for file in map(Path.absolute, loaded.config.files):
        with suppress(FileNotFoundError):
            texts[str(file)] = file.read_text(encoding="utf-8", errors="replace")
    return texts
