"""Every error Lakelet raises: what, where, why, what to do, under a stable code.

The table `CODES` is the single list of codes; `docs/error-codes.md` is checked against it. Secrets are redacted in every text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from lakelet.base.redaction import redacted
from lakelet.base.text import width_of

if TYPE_CHECKING:
    from typing_extensions import Self


_INDENT = "  "


class ExitCode(IntEnum):
    """Process exit codes of the command line (docs/reference/cli.md)."""

    COMPLETED = 0
    FAILED = 1
    INVALID = 2
    ENVIRONMENT = 3
    CHANGES = 4
    INTERRUPTED = 130


@dataclass(frozen=True)
class Location:
    """A position in the user's sources: file as the user would name it, 1-based line (0 where there is none).

    Where they are known: 1-based column, and the text of the line.
    """

    file: str
    line: int
    column: int | None = None
    source: str | None = field(default=None, compare=False, repr=False)
    cell: int | None = None  # of a Jupyter notebook, counted from 1 over all its cells; `line` is within it

    def __str__(self) -> str:
        file = self.file if self.cell is None else f"{self.file}, cell {self.cell}"
        return file + (f", line {self.line}" if self.line else "") + (f", column {self.column}" if self.column else "")

    def excerpt(self, width: int | None = None) -> list[str]:
        """The line of the source and a caret under the column, where they are known. Long lines are cut around the column.

        `width`: the longest line; None leaves 120 characters for the source.
        """
        if not self.source:
            return []
        source, gutter = redacted(self.source), f"{self.line} | "
        column = self.column or 0 if source == self.source else 0  # what is blotted out has another width
        room = 120 if width is None else max(20, min(120, width - len(gutter)))
        first = column - 1 - room * 2 // 3 if column > room else 0
        shown = source[first : first + room].replace("\t", " ").rstrip()
        before = width_of(source[first : column - 1].replace("\t", " ")) if column else 0
        return [gutter + shown, *([" " * (len(gutter) + before) + "^"] if column else [])]


class LakeletError(Exception):
    """Base of all errors.

    Args:
        code: a key of `CODES`.
        what: one sentence with the facts.
        where: source location, if the error has one.
        dataset: full name of the dataset it concerns.
        why: the cause, e.g. the first line of Spark's message.
        todo: what the reader should do.
        nearest: names close to a misspelt one (see `nearest_names`).

    `LakeletError(code, …)` creates an error of the class in `CODES`: `DefinitionError`, `SourceError`, `ExpectationFailed`,
    `StateError`, `FlowError` or `MachineError`. The class pickles, so it survives worker processes.
    """

    def __new__(cls, code: str = "", *args: object, **kwargs: object) -> Self:
        return super().__new__(kind_of(code) if cls is LakeletError and code in CODES else cls)  # type: ignore[return-value]

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: Location | None = None,
        dataset: str | None = None,
        why: str | None = None,
        todo: str | None = None,
        nearest: Sequence[str] = (),
    ) -> None:
        if code not in CODES:
            raise KeyError(f"error code {code!r} is not listed in lakelet.base.errors.CODES")
        what = redacted(what)
        super().__init__(code, what)
        self.code, self.what, self.where, self.dataset = code, what, where, dataset
        self.why, self.todo, self.nearest = why and redacted(why), todo and redacted(todo), tuple(nearest)

    @property
    def exit_code(self) -> ExitCode:
        return CODES[self.code].exit_code

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.what, self.where, self.dataset, self.why, self.todo, self.nearest))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, width: int | None = None) -> list[str]:
        """The error as plain text lines: headline, then indented where / why / suggestion / remedy.

        `width`: columns of the terminal, which the line of the source fits; None where there is none.
        """
        head = f"[{self.code}] " + (f"{self.dataset}: " if self.dataset else "") + self.what
        body = []
        if self.where:
            body.append(str(self.where))
            body.extend(self.where.excerpt(None if width is None else width - len(_INDENT)))
        if self.why:
            body.extend(self.why.strip().splitlines())
        if self.nearest:
            body.append("Did you mean " + " or ".join(f'"{n}"' for n in self.nearest) + "?")
        if self.todo:
            body.extend(self.todo.splitlines())
        return [head, *(_INDENT + line for line in body)]


def _rebuild(
    cls: type[LakeletError],
    code: str,
    what: str,
    where: Location | None,
    dataset: str | None,
    why: str | None,
    todo: str | None,
    nearest: tuple[str, ...],
) -> LakeletError:
    error = cls.__new__(cls)
    LakeletError.__init__(error, code, what, where=where, dataset=dataset, why=why, todo=todo, nearest=nearest)
    return error


class DefinitionError(LakeletError):
    """Code, configuration or a request is wrong: nothing ran, nothing was written."""


class DefinitionErrors(DefinitionError):
    """Everything analysis found wrong, reported together; nothing ran, nothing was written.

    `notices`: what it found besides, each with its place: warnings, which would otherwise show once there is no error.
    """

    def __init__(self, errors: Sequence[LakeletError], notices: Sequence[str] = ()) -> None:
        self.errors, self.notices = list(errors), tuple(notices)
        super().__init__(self.errors[0].code, f"{len(self.errors)} error(s) in the pipeline's definitions")

    @property
    def exit_code(self) -> ExitCode:
        return max((e.exit_code for e in self.errors), default=ExitCode.INVALID)

    def __reduce__(self) -> tuple[object, ...]:
        return (DefinitionErrors, (self.errors, self.notices))

    def lines(self, width: int | None = None) -> list[str]:
        return [line for error in self.errors for line in error.lines(width)]


class SourceError(LakeletError):
    """Input from outside is missing, cannot be read, or is asked for in a way that cannot work."""


class ExpectationFailed(LakeletError):
    """A row broke an expectation whose action is fail; its batch was not written.

    `data_quality`: what the rules counted in that batch, in the form of the event log (EP-8); None where nothing was counted.
    """

    data_quality: Mapping[str, Any] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"data_quality": self.data_quality})


class StateError(LakeletError):
    """The state in the storage does not fit the pipeline, or another process updates it."""


class FlowError(LakeletError):
    """A flow failed while it ran; independent flows are finished and kept."""


class MachineError(LakeletError):
    """This machine cannot run pipelines as it is: Java, jars, packages."""


@dataclass(frozen=True)
class CodeInfo:
    """One code: how the process ends because of it, one sentence about when it is raised, and the class of its errors.

    `kind`: None means the class of the exit code (`_BY_EXIT_CODE`).
    """

    exit_code: ExitCode
    meaning: str
    kind: type[LakeletError] | None = None


_BY_EXIT_CODE = {ExitCode.INVALID: DefinitionError, ExitCode.FAILED: FlowError, ExitCode.ENVIRONMENT: MachineError}
_I, _F, _E = ExitCode.INVALID, ExitCode.FAILED, ExitCode.ENVIRONMENT

CODES: dict[str, CodeInfo] = {
    # usage and definitions: found before anything runs
    "NOT_SUPPORTED_YET": CodeInfo(_I, "a name of the DLT language that this version does not execute"),
    "ROWS_INVALID": CodeInfo(_I, "rows that a test gives or expects have values or types that make no table"),
    "USAGE": CodeInfo(_I, "a command line option is unknown, incomplete or contradicts another one"),
    "FILE_EXISTS": CodeInfo(_I, "init or new would have to overwrite a file"),
    "NAME_INVALID": CodeInfo(_I, "a name given to `lakelet new` cannot be that of a project, a layer or a table"),
    "BUNDLE_PYTHON_MISSING": CodeInfo(_E, "the package or the environment that runs the Python of a bundle is missing"),
    "ARTIFACT_FAILED": CodeInfo(_I, "an artifact of a bundle, such as a wheel, could not be built or is not there"),
    "BUNDLE_PYTHON_FAILED": CodeInfo(_I, "the Python that makes or changes the resources of a bundle failed"),
    "CONFIG_INVALID": CodeInfo(_I, "a bundle file or [tool.lakelet] cannot be read or holds a wrong value"),
    "FILE_NOT_COVERED": CodeInfo(_I, "a pipeline needs a file that a deployment does not upload, or that Databricks does not find there"),
    "NO_SOURCES": CodeInfo(_I, "no pipeline source file was found"),
    "EMPTY_PIPELINE": CodeInfo(_I, "the sources define no table"),
    "SOURCE_KIND": CodeInfo(_I, "a source is neither Python nor SQL nor a notebook in one of them"),
    "NOTEBOOK_NOT_FOUND": CodeInfo(_I, "%run names a notebook that is not there, or one that is running"),
    "SOURCE_FAILED": CodeInfo(_I, "a source file could not be loaded: syntax error or exception at module level"),
    "DBUTILS_UNKNOWN": CodeInfo(_I, "dbutils has no member of this name"),
    "DBUTILS_REFUSED": CodeInfo(_I, "a call of dbutils that writes outside of the storage, or means nothing on this machine"),
    "PATH_NOT_MAPPED": CodeInfo(_I, "a path of Databricks, or of a cloud that cannot be read here, without a `--map` for it", SourceError),
    "MAP_TARGET_MISSING": CodeInfo(_I, "a path is to be read whose place by `--map` does not exist", SourceError),
    "TABLE_PLACE_MISSING": CodeInfo(_I, "a table is to be read whose place by `--table` does not exist", SourceError),
    "TABLE_NOT_KEPT": CodeInfo(_I, "a stream reads a table that code makes again each time it is loaded"),
    "TABLE_PLACE_UNREADABLE": CodeInfo(_I, "the place of a `--table` holds neither Delta nor Parquet, CSV, JSON or ORC", SourceError),
    "CATALOG_TABLE_REFUSED": CodeInfo(_I, "a catalog has the table that a query reads, but it cannot be read by its location", SourceError),
    "FILE_NOT_FOUND": CodeInfo(_I, "dbutils.fs was asked for a path that does not exist", SourceError),
    "WIDGET_UNKNOWN": CodeInfo(_I, "a widget was read that is neither defined nor a parameter"),
    "SECRET_MISSING": CodeInfo(_I, "the environment holds no variable for a secret"),
    "SQL_SYNTAX": CodeInfo(_I, "a statement of a SQL source is not understood"),
    "SOURCE_FORMAT_MISSING": CodeInfo(_I, "Spark does not have the connector that a source needs", SourceError),
    "PACKAGE_MISSING": CodeInfo(_I, "a source or sink needs jars that are fetched for projects whose settings name them"),
    "SQL_STATEMENT_REFUSED": CodeInfo(_I, "a statement that declares nothing stands in a SQL source"),
    "SQL_PARAMETER_UNKNOWN": CodeInfo(_I, "nothing gives a `${key}` or `:key` of a SQL source a value"),
    "PROTECTION_REFUSED": CodeInfo(_I, "a row filter or column mask: ignoring it would show data"),
    "OUTSIDE_PIPELINE": CodeInfo(_I, "a dlt function was called while no pipeline was being loaded"),
    "ARGUMENT_INVALID": CodeInfo(_I, "a dlt function got an argument of a wrong type or value"),
    "DUPLICATE_DATASET": CodeInfo(_I, "two definitions carry the same dataset name"),
    "DUPLICATE_FLOW": CodeInfo(_I, "two definitions carry the same flow name"),
    "DUPLICATE_EXPECTATION": CodeInfo(_I, "two expectations of one dataset carry the same name"),
    "PREVIEW_REFUSED": CodeInfo(_I, "a dataset cannot be computed from what is stored and a few files"),
    "UNKNOWN_DATASET": CodeInfo(_I, "a query reads a table that neither the pipeline nor the storage knows"),
    "VIEW_SETTINGS_DIFFER": CodeInfo(_I, "a flow reads two views whose spark_conf give one setting different values"),
    "PROPERTY_INVALID": CodeInfo(_I, "a setting or table property pipelines.*, delta.* or lakelet.* has a value that it cannot have"),
    "PROPERTY_UNKNOWN": CodeInfo(_I, "a table property delta.* that neither Delta nor Databricks has, or lakelet.* that Lakelet has not"),
    "QUARANTINE_REFUSED": CodeInfo(_I, "a dataset that cannot have a quarantine is to have one, or its name is taken"),
    "QUARANTINE_COLUMN": CodeInfo(_I, "a dataset with a quarantine has a column with the name of one that the quarantine adds"),
    "QUARANTINE_READ": CodeInfo(_I, "a query reads a quarantine, which Databricks does not have"),
    "QUARANTINE_REPLAY": CodeInfo(_I, "rows of a dataset cannot be given back to it by a replay"),
    "UNKNOWN_TARGET": CodeInfo(_I, "a flow writes to a dataset that is not defined"),
    "TARGET_KIND": CodeInfo(_I, "a flow writes to a sink or table that cannot take what it gives"),
    "UNKNOWN_SELECTION": CodeInfo(_I, "--select, --full-refresh or --explain names a dataset that is not defined"),
    "RESET_INCOMPLETE": CodeInfo(_I, "a full refresh of some sources of a flow would make it read its other sources again, too"),
    "DATASET_WITHOUT_FLOW": CodeInfo(_I, "a streaming table has no query and no flow writes to it"),
    "CDC_CONTRADICTION": CodeInfo(_I, "arguments of a change flow exclude each other"),
    "CDC_FLOWS_DIFFER": CodeInfo(_I, "flows of one target disagree: changes beside appends, other keys or another SCD type"),
    "CDC_UNKNOWN_COLUMN": CodeInfo(_I, "a change flow names a column that its source does not have"),
    "CDC_KEY_TYPE": CodeInfo(_I, "the values of a key column cannot be compared"),
    "CDC_SEQUENCE_TYPE": CodeInfo(_I, "the values that sequence_by or system_sequence_by gives cannot be ordered"),
    "CDC_RESERVED_COLUMN": CodeInfo(_I, "a source of changes or snapshots has a column whose name is reserved for change tables"),
    "CDC_STATE_CHANGED": CodeInfo(_I, "keys, SCD type or sequencing type of a change table are not those it was made with", StateError),
    "CDC_CONDITION_TYPE": CodeInfo(_I, "a condition of a change flow is not boolean"),
    "REPLACE_FLOW_INVALID": CodeInfo(_I, "a REPLACE WHERE or REPLACE USING flow does not go with its target, its query or its columns"),
    "CYCLE": CodeInfo(_I, "datasets read each other in a circle"),
    "QUERY_FAILED_ANALYSIS": CodeInfo(_I, "a dataset's function raised an error or its query does not analyse"),
    "QUERY_RETURNED_NO_DATAFRAME": CodeInfo(_I, "a dataset's function returned something else than a DataFrame"),
    "QUERY_KIND": CodeInfo(_I, "a batch query where a stream is needed, or the other way round"),
    "REFRESH_NOT_INCREMENTAL": CodeInfo(_I, "a refresh policy asks to follow the changes of the inputs, and the query never can"),
    "STREAM_QUERY_REFUSED": CodeInfo(_I, "a streaming query that can run neither by appending rows nor by replacing the table's content"),
    "STREAM_SOURCE_UPDATED": CodeInfo(_I, "a stream skips the changes of a change table"),
    "ACTION_IN_FUNCTION": CodeInfo(_I, "a dataset's function writes, or runs a query where strict mode forbids it"),
    "EXPECTATION_INVALID": CodeInfo(_I, "an expectation does not analyse or is not boolean"),
    "RULE_FILE_INVALID": CodeInfo(_I, "a rule file, a suite of Great Expectations or the checks in them cannot be used as they stand"),
    "RULE_UNKNOWN": CodeInfo(_I, "a table has no rule of the name that `lakelet rules test` was given"),
    "SCHEMA_MISMATCH": CodeInfo(_I, "a query does not fit the declared schema"),
    "SCHEMA_INCOMPATIBLE": CodeInfo(_I, "a column changed its type; the stored table cannot take it", StateError),
    "KIND_CHANGED": CodeInfo(
        _I, "a stored table is now of another kind: streaming table, materialized view, change table, sink", StateError
    ),
    "TABLE_OWNED": CodeInfo(_I, "the sources define a table that belongs to another pipeline of the storage"),
    "FORMAT_UNKNOWN": CodeInfo(_I, "something stored has another format than the one that this Lakelet reads", StateError),
    "DEPLOY_NEEDS_LAKELET": CodeInfo(_I, "code that is deployed imports Lakelet, or its environment installs it: Databricks has none"),
    "DEPLOY_STATE": CodeInfo(_I, "the state of a deployment cannot be read, or belongs to another bundle or target", StateError),
    "DEPLOY_EXISTS": CodeInfo(_I, "the workspace has a resource of that name that this bundle did not deploy"),
    "DEPLOY_DRIFT": CodeInfo(_I, "the bundle changes a setting that somebody has changed in the workspace to something else", StateError),
    "DEPLOY_PREVENTED": CodeInfo(_I, "a resource with lifecycle.prevent_destroy would be deleted"),
    "DEPLOY_UNKNOWN": CodeInfo(_I, "--with-data or --to names what was not deployed, or there is no deployment to return to"),
    "DEPLOY_SECRET": CodeInfo(_I, "a rollback needs the value of a secret that is not in the workspace any more"),
    "FOREIGN_DLT": CodeInfo(_I, "another package already owns the import name dlt"),
    # run time
    "QUARANTINE_MISCOUNTED": CodeInfo(_F, "the rows for a quarantine are not those that were counted", StateError),
    "STREAM_SOURCE_CHANGED": CodeInfo(_F, "rows of a streaming source were updated or deleted", SourceError),
    "KAFKA_DATA_LOST": CodeInfo(_F, "a topic does not have the records any more that come next for a flow", SourceError),
    "KAFKA_TOPIC_MISSING": CodeInfo(_F, "a topic that a flow reads does not exist", SourceError),
    "KAFKA_UNREACHABLE": CodeInfo(_F, "a broker of Kafka does not answer", SourceError),
    "STREAM_STATE_CHANGED": CodeInfo(
        _F, "stateful operators of a streaming flow changed: the state in its checkpoint does not fit them", StateError
    ),
    "STREAM_SOURCES_CHANGED": CodeInfo(_F, "the sources of a streaming flow are not those that its checkpoint knows", StateError),
    "SOURCE_MOVED": CodeInfo(
        _F, "a stream is to read another folder, where files of names that it has read lie: the same files, or others", StateError
    ),
    "PARTITIONS_CHANGED": CodeInfo(_F, "the partition columns of a streaming table changed; its files have the old ones", StateError),
    "NOT_NULL_VIOLATED": CodeInfo(_F, "rows have NULL in a column that the table's schema declares NOT NULL"),
    "SCHEMA_OUTGROWN": CodeInfo(_F, "data brought columns, nested fields, types or names that a table does not take as it is declared"),
    "REFRESH_WOULD_BE_FULL": CodeInfo(_F, "a materialized view whose policy is incremental_strict would be computed as a whole"),
    "FLOW_FAILED": CodeInfo(_F, "a flow failed while it ran"),
    "USER_FUNCTION_FAILED": CodeInfo(_F, "a dataset's function raised an error while the update ran"),
    "HOOK_FAILED": CodeInfo(_F, "an event hook raised an error: a warning, the update goes on"),
    "SINK_HANDLER_FAILED": CodeInfo(_F, "the function of a foreach_batch_sink raised an error"),
    "SINK_COLUMNS_REFUSED": CodeInfo(_F, "the table of a Delta sink does not take the names of columns"),
    "SINK_FORMAT_MISSING": CodeInfo(_F, "Spark does not have the data source that a sink names as its format"),
    "EXPECTATION_VIOLATION": CodeInfo(_F, "a row broke an expectation whose action is fail", ExpectationFailed),
    "CDC_NULL_KEY": CodeInfo(_F, "a change event has NULL in a key column"),
    "REPLACE_NULL_SEQUENCE": CodeInfo(_F, "rows of a REPLACE USING flow have no sequencing value"),
    "CDC_NULL_SEQUENCE": CodeInfo(_F, "a change event has no sequencing value"),
    "CDC_WHERE_NOT_MET": CodeInfo(_F, "a change event does not meet the condition that its flow promises by where"),
    "CDC_NO_SNAPSHOT": CodeInfo(_F, "a snapshot function gave no snapshot, and the table has no columns yet"),
    "CDC_SNAPSHOT_INVALID": CodeInfo(_F, "a snapshot's version does not ascend, or a key occurs twice in it"),
    "CDC_LOG_GAP": CodeInfo(_F, "a version of a change table's internal log is gone", StateError),
    "CDC_FILES_GONE": CodeInfo(_F, "files that hold the state of a change table were deleted"),
    "CDC_ROW_BY_HAND": CodeInfo(_F, "a row written into a change table by hand cannot be an event of its key"),
    "CDC_TABLE_ALTERED": CodeInfo(_F, "columns, constraints or properties of a change table were altered by hand"),
    "JSON_COLUMN_INVALID": CodeInfo(_I, "a call of from_json with schemaLocationKey is not possible as it stands"),
    "JSON_FIELDS_UNKNOWN": CodeInfo(_F, "no JSON text has come yet, so the fields that a query takes from from_json are not known"),
    "EVOLUTION_LIMIT": CodeInfo(_F, "a flow was restarted too often because of new columns"),
    "LAKELET_STORAGE_BUSY": CodeInfo(_F, "another update holds the lease of this storage", StateError),
    "ENVIRONMENT_BEHIND": CodeInfo(_F, "the main storage has gone on since an environment began", StateError),
    "PROMOTION_CONFLICT": CodeInfo(_F, "somebody else has written a table while an environment was promoted", StateError),
    "PROMOTION_UNFINISHED": CodeInfo(_F, "a promotion into the main storage was not completed", StateError),
    "LOG_NOT_COPIED": CodeInfo(_F, "the log of a table of the main storage cannot be copied into an environment", StateError),
    "MAINTENANCE_FAILED": CodeInfo(_F, "OPTIMIZE or VACUUM of a table failed; its rows are as before"),
    "CATALOG_UNREACHABLE": CodeInfo(_F, "a catalog that tables are published in, or looked up in, does not answer"),
    "PUBLISH_REFUSED": CodeInfo(_F, "a catalog has a table of that name that this pipeline did not publish", StateError),
    "PUBLISH_FAILED": CodeInfo(_F, "a catalog refused to register or remove a table"),
    "DEPLOY_LOCKED": CodeInfo(_F, "somebody else deploys to this target", StateError),
    "DEPLOY_CONFLICT": CodeInfo(_F, "somebody changed a resource or the state while it was being deployed", StateError),
    "PROCESS_BUSY": CodeInfo(_F, "a second pipeline was loaded or run in a process while the first one is", StateError),
    "UNKNOWN_TABLE": CodeInfo(_I, "show or sql names a table the storage does not hold"),
    "UNKNOWN_COLUMN": CodeInfo(_I, "the text given to `lakelet sql` names a column that the tables it reads do not have"),
    "SQL_FAILED": CodeInfo(_I, "the text given to `lakelet sql` does not analyse"),
    "QUERY_FAILED": CodeInfo(_F, "the query given to `lakelet sql` failed while it ran"),
    # Auto Loader: the condition names of Databricks (AL-6)
    "UNKNOWN_FIELD_EXCEPTION": CodeInfo(_F, "a file brought fields that the schema does not know", SourceError),
    "CF_UNKNOWN_OPTION_KEYS_ERROR": CodeInfo(_I, "unknown cloudFiles.* option", SourceError),
    "CF_INCONSISTENT_OPTIONS": CodeInfo(_I, "cloudFiles.* options contradict each other", SourceError),
    "CF_INVALID_CLEAN_SOURCE_MODE": CodeInfo(_I, "cloudFiles.cleanSource is something else than OFF, MOVE or DELETE", SourceError),
    "CF_CLEAN_SOURCE_ALLOW_OVERWRITES_BOTH_ON": CodeInfo(_I, "cleanSource together with allowOverwrites", SourceError),
    "CF_INVALID_OPTION_VALUE": CodeInfo(_I, "an option has a value of a wrong type or range", SourceError),
    "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE": CodeInfo(_F, "no file to infer a schema from", SourceError),
    "CF_FAILED_TO_INFER_SCHEMA": CodeInfo(_F, "the schema could not be inferred", SourceError),
    "CF_ADD_NEW_NOT_SUPPORTED": CodeInfo(_I, "addNewColumns together with an explicit schema", SourceError),
    "BINARY_FILE_DATA_SOURCE_SCHEMA_MISMATCH": CodeInfo(_I, "a declared schema is not the one that binaryFile has", SourceError),
    "CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE": CodeInfo(_I, "the evolution mode does not go with this format", SourceError),
    "CF_UNSUPPORTED_FORMAT_FOR_SCHEMA_INFERENCE": CodeInfo(
        _I, "the columns of this format are not inferred, a schema is needed", SourceError
    ),
    "CF_INVALID_SCHEMA_EVOLUTION_MODE": CodeInfo(_I, "unknown evolution mode", SourceError),
    "CF_INVALID_SCHEMA_HINTS_OPTION": CodeInfo(_I, "cloudFiles.schemaHints does not parse", SourceError),
    "CF_INVALID_SCHEMA_HINT_COLUMN": CodeInfo(_I, "a schema hint contradicts another one", SourceError),
    "CF_INCORRECT_STREAM_USAGE": CodeInfo(_I, "no cloudFiles.format, or no path", SourceError),
    "CF_INCORRECT_BATCH_USAGE": CodeInfo(_I, "cloudFiles was used in a batch read", SourceError),
    "CF_SOURCE_DIRECTORY_PATH_REQUIRED": CodeInfo(_I, "load() was called without a path", SourceError),
    "CF_SOURCE_UNSUPPORTED": CodeInfo(_I, "the path has a scheme that cannot be read here", SourceError),
    "CF_USE_DELTA_FORMAT": CodeInfo(_I, "the source folder is a Delta table", SourceError),
    "CF_PATH_IS_NOT_A_DIRECTORY": CodeInfo(_I, "a stream needs a folder, not a single file", SourceError),
    "CF_UNABLE_TO_DETECT_FILE_FORMAT": CodeInfo(_F, "read_files was given no format, and the files do not tell one", SourceError),
    "CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES": CodeInfo(_F, "the path of a batch read_files does not exist", SourceError),
    "CF_INCORRECT_SQL_PARAMS": CodeInfo(_I, "read_files or cloud_files was given arguments of a wrong shape", SourceError),
    "CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION": CodeInfo(_I, "cloud_files or a stream of files outside a pipeline", SourceError),
    "CF_STATE_INCORRECT_SQL_PARAMS": CodeInfo(_I, "cloud_files_state was given arguments of a wrong shape", SourceError),
    "CF_STATE_INVALID_CHECKPOINT_PATH": CodeInfo(
        _I, "cloud_files_state was given a folder that holds no state of Auto Loader", SourceError
    ),
    "CF_FILE_CHANGED": CodeInfo(_F, "a source file changed while it was read", SourceError),
    "CF_STATE_DAMAGED": CodeInfo(_F, "the ledger or the schema log of a source cannot be read", StateError),
    "STORE_FAILED": CodeInfo(_F, "an object store or a disk refused or could not do what was asked of it", SourceError),
    "FAILED_READ_FILE": CodeInfo(_F, "a source file is missing or cannot be read", SourceError),
    "AVRO_MISSING": CodeInfo(_E, "Avro files are to be read, and the extra lakelet[avro] is not installed"),
    "HDFS_MISSING": CodeInfo(_E, "a path on HDFS is to be opened, and the extra lakelet[hdfs] is not installed"),
    "QUALITY_MISSING": CodeInfo(_E, "tables have checks of their own, and the extra lakelet[quality] is not installed"),
    # a Databricks workspace
    "WORKSPACE_DENIED": CodeInfo(_F, "the user of the credentials has not the right that a request to the workspace needs"),
    "WORKSPACE_NOT_FOUND": CodeInfo(_F, "the workspace has not the object that was asked for"),
    "WORKSPACE_CONFLICT": CodeInfo(_F, "the workspace has something already that stands in the way: an object, an active update"),
    "WORKSPACE_BUSY": CodeInfo(_F, "the workspace refused requests for lack of room until patience ended"),
    "WORKSPACE_REFUSED": CodeInfo(_F, "the workspace refused a request, or failed at it"),
    "WORKSPACE_UNANSWERED": CodeInfo(_F, "a request that may take effect once only got no answer: the workspace may have acted"),
    "REMOTE_FAILED": CodeInfo(_F, "a flow or an update failed on Databricks; the text is Databricks' own"),
    "REMOTE_QUERY_FAILED": CodeInfo(_F, "a SQL warehouse of the workspace refused a query, or took too long"),
    "NOT_DEPLOYED": CodeInfo(_I, "a command for a deployed pipeline was given, and the target has none, or none of that name"),
    "WORKSPACE_UNREACHABLE": CodeInfo(_E, "nothing answers at the address of the workspace"),
    "WORKSPACE_CREDENTIALS": CodeInfo(_E, "no workspace is named, or its credentials are missing, wrong, expired or not safe to send"),
    "PYTEST_MISSING": CodeInfo(_E, "`lakelet test` is asked for, and pytest is not installed"),
    "SDK_MISSING": CodeInfo(_E, "a workspace is to be talked to, and the extra lakelet[deploy] is not installed"),
    # environment
    "JAVA_MISSING": CodeInfo(_E, "no usable Java was found"),
    "JARS_MISSING": CodeInfo(_E, "Delta's jars are not on this machine and could not be fetched"),
    "PYSPARK_BROKEN": CodeInfo(_E, "pyspark is missing, has another version, or was overwritten by databricks-connect"),
    "SPARK_START_FAILED": CodeInfo(_E, "Spark's Java process ended before the session was there"),
    "SESSION_ENDED": CodeInfo(_E, "the session of `lakelet watch` ended while a command used it"),
    "SESSION_WITHOUT_DELTA": CodeInfo(_E, "the process already has a Spark session, and that one has no Delta"),
    "ARCHIVE_FAILED": CodeInfo(_E, "the class-data archive could not be made; sessions work without it, only slower"),
    "STORAGE_UNSUPPORTED": CodeInfo(_E, "the storage root has a scheme this version cannot use"),
    "STORAGE_FAILED": CodeInfo(_E, "the storage cannot be written: it is full, read-only, closed to this user, or does not answer"),
    "EVENT_LOG_FAILED": CodeInfo(_E, "the event log cannot be read or written, for example because a file of it is damaged"),
    "STORAGE_DAMAGED": CodeInfo(_E, "a file of the storage is empty or cut off, and so is the one before it"),
    "INTERNAL": CodeInfo(_F, "a defect in Lakelet"),
}


def kind_of(code: str) -> type[LakeletError]:
    """Return the class of the errors with this code. Raises KeyError for a code that is not in `CODES`."""
    info = CODES[code]
    return info.kind or _BY_EXIT_CODE[info.exit_code]


def distinct(errors: Iterable[LakeletError]) -> tuple[LakeletError, ...]:
    """Return the errors without those that say the same about the same position and dataset as an earlier one."""
    found: dict[object, LakeletError] = {}
    for error in errors:
        found.setdefault((error.code, error.what, error.where, error.dataset), error)
    return tuple(found.values())


_START_OVER = "start over: a full refresh of the dataset for the state of a source, --storage DIR for a storage."


def unknown_format(what: object, found: object, known: int, *, remedy: str = _START_OVER) -> LakeletError:
    """Return the FORMAT_UNKNOWN error for something stored in format `found`. Only `known` is read. `remedy`: what else helps."""
    what = f"{what} has format {found}; this Lakelet reads format {known}"
    return LakeletError("FORMAT_UNKNOWN", what, todo=f"Use the Lakelet version that wrote it, or {remedy}")


def nearest_names(name: str, known: Iterable[str], limit: int = 2, cutoff: float = 0.6) -> tuple[str, ...]:
    """Known names that look like `name`, best first. Compares without case, and on the last part of dotted names too."""
    candidates: dict[str, str] = {}
    for full in known:
        candidates.setdefault(full.lower(), full)
        candidates.setdefault(full.rsplit(".", 1)[-1].lower(), full)
    hits = difflib.get_close_matches(name.lower(), candidates, n=limit + 2, cutoff=cutoff)
    short = difflib.get_close_matches(name.rsplit(".", 1)[-1].lower(), candidates, n=limit + 2, cutoff=cutoff)
    return tuple(dict.fromkeys(candidates[h] for h in [*hits, *short]))[:limit]
