"""From source files to `Definitions`: runs each file once under a registry. No Spark; the session comes in through the door."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location, distinct, nearest_names
from lakelet.base.names import Namespace
from lakelet.base.phases import report
from lakelet.base.raised import import_remedy, innermost_location, name_remedy, near_names
from lakelet.base.redaction import redacted
from lakelet.base.user_code import class_and_text, code_location, display_path, original_error, user_code_block
from lakelet.config.named_tables import table_flag
from lakelet.config.path_map import python_path_hint
from lakelet.config.rule_files import read_rule_file, rule_files
from lakelet.config.tool_settings import PACKAGES, package_missing
from lakelet.language import api
from lakelet.language.api import dlt_modules
from lakelet.language.dbutils import InjectedNames
from lakelet.language.dbutils.parts import Locate
from lakelet.language.declaration_checks import (
    check_properties,
    computed_problems,
    replacing_notices,
    replacing_problems,
    undeclared,
    with_computed,
)
from lakelet.language.failed_parts import FailedPart, FailedParts, failed_declaration, failed_python, failed_sql
from lakelet.language.import_paths import ImportPath
from lakelet.language.model import Definitions, Kind
from lakelet.language.notebook import SQL, LeftOut, SourceCells, SourceRunner, read_source
from lakelet.language.registry import Notice, Registry, active_reader, name_left_out, recording


@dataclass(frozen=True)
class LoadedSources:
    """Declarations of the files, the notices about them, and the helper modules that they imported.

    `errors`: all errors found so far; analysis adds its own, and all are reported together. `failed_parts`: what did not run of the files:
    a name that seems to be missing may stand in it. `duplicates`: keys of the datasets that have several definitions; `others`: the
    declarations with the second ones, with the third ones, and so on.
    """

    definitions: Definitions
    notices: tuple[Notice, ...]
    helpers: tuple[ModuleType, ...]
    errors: tuple[LakeletError, ...] = ()
    failed_parts: FailedParts = field(default_factory=FailedParts)
    others: tuple[Definitions, ...] = ()
    duplicates: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """Whether every file ran to its end."""
        return not self.failed_parts


@contextmanager
def loaded(
    files: Sequence[Path],
    *,
    import_roots: Sequence[Path],
    namespace: Namespace,
    injected: Mapping[str, Any],
    parameters: Mapping[str, str] | None = None,
    remarks: Sequence[Notice] = (),
    locate: Locate = str,
) -> Iterator[LoadedSources]:
    """Run `files` in order and yield what they declare; the import environment lasts as long as the block.

    Args:
        files: source files and notebooks in Python or SQL; `injected` names (such as `spark`) are their globals, beside `dbutils`.
        import_roots: folders from which the files import helper modules.
        parameters: the pipeline's configuration, for widgets and for `${…}` in SQL.
        remarks: notices that come before those of the files.
        locate: where a path of user code lies here, for `dbutils.fs`.

    Raises NO_SOURCES or FOREIGN_DLT; errors in the files are in `LoadedSources.errors`.
    """
    if not files:
        raise LakeletError("NO_SOURCES", "no pipeline source file was found", todo="Name a file or folder: lakelet run pipelines/")
    registry = Registry(namespace)
    registry.notices += remarks
    tools = InjectedNames(injected, note=_notice_recorder(registry), parameters=parameters or {}, locate=locate)
    imports = ImportPath(import_roots, files)
    with dlt_modules(), tools.importable(), imports.installed():
        found = SourceRunner(tools.frame, sql_into(injected.get("spark"), parameters or {}), files, _leaving_out(registry, imports))
        with recording(registry), tools.while_loading(), closing(found) as sources:
            for number, file in enumerate(files):
                report("Loading files", number, len(files))
                _run_source_file(file, sources, registry, imports)
        definitions, others = with_computed(registry.definitions()), tuple(map(with_computed, registry.others()))
        registry.errors += [*computed_problems(definitions), *replacing_problems(definitions)]
        registry.notices += [*replacing_notices(definitions), *undeclared(files)]
        check_properties(definitions, registry, parameters)
        if not registry.errors and not any(d.kind is not Kind.VIEW for d in definitions.datasets):
            registry.errors.append(_no_datasets(files, registry.notices))
        yield LoadedSources(
            definitions,
            tuple(registry.notices),
            imports.imported(),
            distinct(registry.errors),
            registry.failed_parts,
            others,
            registry.duplicates(),
        )


def _notice_recorder(registry: Registry) -> Callable[[Notice], None]:
    """Where the injected names leave their notices: with the flow whose function runs, else with those of loading."""

    def note(notice: Notice) -> None:
        own = getattr(active_reader(), "notices", None)
        (registry.notices if own is None else own).append(notice)

    return note


def _no_datasets(files: Sequence[Path], notices: Sequence[Notice]) -> LakeletError:
    """The error for sources without a table; what was left out of them may be the reason."""
    shown = [display_path(str(file)) for file in files]
    looked = "looked at " + ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    return LakeletError(
        "EMPTY_PIPELINE",
        "the sources define no table",
        why="\n".join([looked, *(f"{notice.where}: {notice.text}" for notice in notices[:3])]),
        todo="Define at least one with @dlt.table; views alone are never stored.",
    )


def sql_into(session: Any, parameters: Mapping[str, str]) -> Callable[[SourceCells], bool]:
    """What declares the SQL of a source: into the active registry, on this session."""

    def declare(source: SourceCells) -> bool:
        from lakelet.language import sql  # here, because most pipelines hold none

        cells = [sql.Cell(cell.text, cell.line, cell.number) for cell in source.own()]
        return sql.declare(cells, source.file, configuration=parameters, session=session)

    return declare


def _run_source_file(file: Path, sources: SourceRunner, registry: Registry, imports: ImportPath) -> None:
    """Run one file as `__main__`, as Databricks runs source files; collect what goes wrong."""
    imports.source = file
    try:
        with user_code_block():
            sources.run(file)
    except Exception as raised:  # raised by the user's file
        error = _error_of(raised, file, imports)
        registry.errors.append(name_left_out(error, registry.notices))
        registry.failed_parts.parts.append(_broken_off(file, raised, error))


def _leaving_out(registry: Registry, imports: ImportPath) -> LeftOut:
    """What notes a declaration that raises, in `registry`; one that raises for want of another one, or of the same import, is no error."""

    def left_out(source: SourceCells, raised: Exception, statement: ast.stmt, text: str, module: ModuleType) -> None:
        shown, missing = display_path(str(source.file)), module.__dict__.setdefault(_MISSING, set())
        known = isinstance(raised, NameError) and raised.name in missing
        if isinstance(raised, NameError):
            missing.add(raised.name)
        part = failed_declaration(shown, text, statement)
        missing.update(part.bound)
        registry.failed_parts.parts.append(part)
        if not known:
            registry.errors.append(name_left_out(_error_of(raised, source.file, imports), registry.notices))

    return left_out


_MISSING = "__lakelet_missing__"
"""The names that a module would have if none of its declarations had raised."""


def _broken_off(file: Path, raised: Exception, error: LakeletError) -> FailedPart:
    """What did not run of a file. A helper module that fails may have made declarations of any name."""
    shown = display_path(str(file))
    elsewhere = (error.where is not None and error.where.file != shown) or isinstance(original_error(raised), ImportError)
    with suppress(OSError, LakeletError):  # a file that cannot be read as a source
        source = read_source(file)
        text = "\n".join(cell.text for cell in source.own())
        if source.language == SQL:
            return failed_sql(shown, text)
        return failed_python(shown, text, computed=elsewhere and not isinstance(original_error(raised), ModuleNotFoundError))
    return FailedPart(shown, "", None)


def _error_of(raised: Exception, file: Path, imports: ImportPath) -> LakeletError:
    """The coded error for what a source raised while it was loaded."""
    if isinstance(raised, LakeletError):
        return raised
    if isinstance(raised, SyntaxError):
        where = replace(code_location(raised.filename or str(file), raised.lineno or 1), column=raised.offset, source=raised.text)
        what = f"the file does not compile: {raised.msg}"
        return LakeletError("SOURCE_FAILED", what, where=where, todo="Correct the syntax.")
    cause = original_error(raised)
    failed = (
        without_connector(cause)
        or _rule_error(cause)
        or LakeletError(
            "SOURCE_FAILED",
            f"loading the file failed: {class_and_text(cause, _first_line(cause))}",
            nearest=_nearest_modules(cause),
            todo=_lying_elsewhere(cause, imports) or _import_hint(cause),
        )
    )
    failed.where = failed.where or innermost_location(cause) or Location(display_path(str(file)), 1)
    return failed


def _rule_error(error: BaseException) -> LakeletError | None:
    """The error behind a RuleError of a project's loader of rules; None for any other error.

    A mistake in a rule file comes first, with its line: what the loader says may follow from it. Else the line is that of the rule that the
    loader refused, or of the call of `rules`. The loader is a module of the project, so its class is known by its name.
    """
    loader = sys.modules.get(type(error).__module__)
    folder = getattr(loader, "FOLDER", None)
    if type(error).__name__ != "RuleError" or not isinstance(folder, Path):
        return None
    files = [read_rule_file(path) for path in rule_files(folder)]
    if broken := next((file for file in files if file.mistakes), None):
        return broken.errors[0]
    what, nearest, refused = getattr(error, "what", str(error)), getattr(error, "nearest", ()), tuple(getattr(error, "rule", None) or ())
    for rule in (rule for file in files for rule in file.rules if refused):
        if (rule.file, rule.section, rule.subject, rule.action, rule.name) == refused[:5]:
            return LakeletError("RULE_FILE_INVALID", what.removeprefix(f"{rule.file}: "), where=Location(rule.file, rule.line))
    where = innermost_location(error, outside=getattr(loader, "__file__", None))
    return LakeletError("SOURCE_FAILED", what, where=where, nearest=tuple(nearest))


def _first_line(error: BaseException) -> str:
    """Return the first line of an error; of one that only Java has a class for, Java's own text."""
    return (sentences.JAVA_SAYS.pattern.sub("", redacted(str(error)).strip()).splitlines() or [""])[0]


def _lying_elsewhere(error: BaseException, imports: ImportPath) -> str | None:
    """What to do about a module that the project holds and that is not found from where it lies; None for any other error."""
    files = imports.lying(error.name) if isinstance(error, ModuleNotFoundError) and error.name else []
    if not files or error.name is None:  # type: ignore[attr-defined]
        return None
    folder = display_path(str(files[0].parents[error.name.count(".")]))  # type: ignore[attr-defined]
    shown = ", ".join(display_path(str(file)) for file in files[:3])
    return f"The project has {shown}: put that folder on the path, sys.path.append({folder!r}), or make it the root_path of the pipeline."


def _import_hint(error: BaseException) -> str:
    if remedy := import_remedy(error) or name_remedy(error):
        return remedy
    if hint := python_path_hint(error):
        return hint
    if sentences.JAVA_CLASS_MISSING.is_in(str(error)):
        return "It calls a Java class of a package that this session does not have: put its jars into the folder `jars` of pyspark."
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    if condition == "SQL_CONF_NOT_FOUND":
        key = str((error.getMessageParameters() or {}).get("sqlConf", "KEY")).strip('"')  # type: ignore[attr-defined]
        return f"Set it in the pipeline's configuration, or with --param {key}=VALUE."
    if condition in ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"):
        parameters = error.getMessageParameters() or {}  # type: ignore[attr-defined]
        name = parameters.get("relationName") or parameters.get("identifier") or "NAME"
        inside = "Streams of tables, and tables that no update has made yet, can be read inside a dataset's function only."
        return f"If it is a table from outside, say where its folder or file lies: {table_flag(name)}. {inside}"
    return "Code outside of functions runs when the file is loaded; nothing else has run."


_CONNECTORS = (sentences.FORMAT_MISSING, sentences.NO_DRIVER, sentences.DRIVER_CLASS_MISSING)


def without_connector(error: BaseException, connector: str | None = None) -> LakeletError | None:
    """SOURCE_FORMAT_MISSING for an error that says that Spark needs a package to read what the code asks for; None for any other.

    PACKAGE_MISSING where the project's settings can name that package. `connector`: what is missing, where the caller knows it.
    """
    found = filter(None, (sentence.find(str(error)) for sentence in _CONNECTORS))
    name = connector or next((match["name"] for match in found), None)
    if name is None:
        return None
    if name.lower() in PACKAGES:
        return package_missing(name.lower())
    return LakeletError(
        "SOURCE_FORMAT_MISSING",
        f"the source needs a connector that this session does not have: {name}",
        why=_first_line(error),
        todo="Put the jars of its package, for this Spark, into the folder `jars` of pyspark, or give the data as files or as a table:\n"
        "the cookbook says how a function picks its source by a parameter.",
    )


_UNEXPECTED = re.compile(r"(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_NOT_IN_MODULE = re.compile(r"(?:cannot import name|module '[\w.]+' has no attribute) '(?P<name>\w+)'")


def _nearest_modules(error: BaseException) -> tuple[str, ...]:
    """Names of the language close to one that it does not have."""
    text = str(error)
    if match := _NOT_IN_MODULE.search(text):
        return nearest_names(match["name"], api.DLT) if "'dlt'" in text or "'pyspark.pipelines'" in text else ()
    if match := _UNEXPECTED.search(text):
        arguments = [name for f in api.DLT.values() if f.__name__ == match["function"] for name in inspect.signature(f).parameters]
        return nearest_names(match["name"], arguments)
    return near_names(error)
