"""One unit test as a value, read from its YAML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import CODES, LakeletError, Location, nearest_names
from lakelet.config.yaml_tree import ConfigNode
from lakelet.testing.row_comparison import Row, columns_of_texts
from lakelet.testing.unit_tests.settings import Settings

if TYPE_CHECKING:
    from lakelet.storage.rule_counts import RuleCount

_TEST = frozenset({"name", "model", "callable", "log_level", "spark_conf", "given", "expect", "updates"})
_GIVEN = frozenset({"table", "folder", "file", "rows", "text", "schema"})
_EXPECT = frozenset({"rows", "tables", "rules", "dropped", "quarantined", "late", "error"})
_UPDATE = frozenset({"given", "expect"})
_COUNTS = frozenset({"passed", "failed"})


class FailedUnitTest(AssertionError):
    """A unit test whose result is not the expected one; the text says where and how they differ."""

    def __init__(self, where: Location, lines: Sequence[str]) -> None:
        super().__init__("\n".join([f"{where}", *lines]))


@dataclass(frozen=True)
class CaseInput:
    """One input: rows of a table (`folder` is False), or a file with rows or text in a folder of files.

    As in sdp-test the columns of a table without `schema` are in alphabetical order, so that UNION puts two tables together, and a column
    with texts and other values holds texts.
    """

    name: str
    rows: tuple[Row, ...]
    where: Location
    schema: Mapping[str, str] = field(default_factory=dict)
    folder: bool = False
    file: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class ExpectedResult:
    """The state that a test expects after an update; None and empty values are not compared.

    Attributes:
        rows: of the model's dataset; `tables` of others, by name.
        rules: counts per expectation of the model's dataset; None in place of `passed` is not compared.
        dropped, quarantined: rows of the model's dataset that broke a drop rule; `late`: rows that came behind its watermark.
        error: code of the error with which the update must fail or be refused.
    """

    where: Location
    rows: tuple[Row, ...] | None = None
    tables: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    dropped: int | None = None
    quarantined: int | None = None
    late: int | None = None
    error: str | None = None

    @property
    def of_update(self) -> bool:
        """Whether only an update can show it."""
        counts = (self.dropped, self.quarantined, self.late, self.error)
        return bool(self.tables or self.rules) or any(count is not None for count in counts)


@dataclass(frozen=True)
class CaseStep:
    """Inputs that arrive, and the expected state after the update that follows."""

    given: tuple[CaseInput, ...]
    expect: ExpectedResult | None


@dataclass(frozen=True)
class UnitTest:
    """One test. `model`: the file under test; `function`: name of the function or dataset in it; `steps`: one, or one per update."""

    name: str
    where: Location
    model: Path
    function: str | None
    steps: tuple[CaseStep, ...]
    settings: Settings
    spark_conf: Mapping[str, str]
    staged: bool

    @property
    def needs_update(self) -> bool:
        """Whether the test asks for more than the result of one function."""
        files = any(given.folder and given.text is not None for step in self.steps for given in step.given)
        return self.staged or files or any(step.expect.of_update for step in self.steps if step.expect)


@dataclass(frozen=True)
class UnreadableTest:
    """A test, or a whole file of tests, that cannot be read: it fails with the error, and the others run."""

    name: str
    where: Location
    error: LakeletError


def read_test(node: ConfigNode, folder: Path, settings: Settings) -> UnitTest:
    """Read one entry of `tests`. Scalars under other keys are variables of this test. Raises CONFIG_INVALID with file and line.

    As in sdp-test, lists and mappings under other keys mean nothing, for example YAML anchors.
    """
    entries = node.entries("a test")
    more = {key: value for key, value in entries.items() if key not in _TEST}
    refuse_misspelt(node, _TEST, "a test", only=[key for key, value in more.items() if isinstance(value.value, dict | list)])
    settings = settings.over({key: value for key, value in more.items() if not isinstance(value.value, dict | list)})
    model = entries.get("model")
    if model is None:
        raise node.bad("a test has no model", todo="Name the file under test: model: orders.sql")
    staged = "updates" in entries
    if staged and "expect" in entries:
        raise entries["expect"].bad("a test with updates expects something of each of them", todo="Write expect below an update.")
    path = settings.text(model)
    file = next((base / path for base in (folder, settings.root, Path.cwd()) if (base / path).is_file()), None)
    if file is None:
        near = nearest_names(Path(path).name, [f.name for f in folder.iterdir()])
        raise model.bad(f"there is no file {path!r} beside the test", nearest=near)
    return UnitTest(
        name=settings.text(entries["name"]) if "name" in entries else "unnamed",
        where=node.where,
        model=file.resolve(),
        function=settings.text(entries["callable"]) if "callable" in entries else None,
        steps=_steps(node, settings),
        settings=settings,
        spark_conf=_texts(node.get("spark_conf"), settings, "spark_conf"),
        staged=staged,
    )


def _steps(node: ConfigNode, settings: Settings) -> tuple[CaseStep, ...]:
    first = _given(node.get("given"), settings)
    updates = node.get("updates")
    if updates is None:
        expect = node.get("expect")
        return (CaseStep(first, _expected(expect, settings) if expect else ExpectedResult(node.where, rows=())),)
    steps = []
    for update in updates.items("updates"):
        update.refuse_unknown(_UPDATE, "an update")
        expect = update.get("expect")
        steps.append(CaseStep(_given(update.get("given"), settings), _expected(expect, settings) if expect else None))
    if not steps:
        raise updates.bad("updates is empty")
    return (replace(steps[0], given=(*first, *steps[0].given)), *steps[1:])


def _given(node: ConfigNode | None, settings: Settings) -> tuple[CaseInput, ...]:
    return tuple(_one_given(item, settings) for item in (node.items("given") if node else ()))


def _one_given(node: ConfigNode, settings: Settings) -> CaseInput:
    node.refuse_unknown(_GIVEN, "an input")
    table, folder, file, text = (node.get(key) for key in ("table", "folder", "file", "text"))
    named = table or folder
    if named is None or (table and folder):
        raise node.bad("an input is either a table or a folder of files", todo="Write table: NAME, or folder: PATH.")
    if table and (file or text):
        raise (file or text or node).bad("file and text belong to a folder of files")
    rows, schema = _rows(node.get("rows"), settings), _texts(node.get("schema"), settings, "schema")
    if not (schema or folder):
        rows = tuple({key: row[key] for key in sorted(row)} for row in rows)
        schema = dict.fromkeys(columns_of_texts(rows), "string")
    return CaseInput(
        name=settings.text(named),
        rows=rows,
        where=node.where,
        schema=schema,
        folder=folder is not None,
        file=settings.text(file) if file else None,
        text=settings.text(text) if text else None,
    )


def _expected(node: ConfigNode, settings: Settings) -> ExpectedResult:
    node.refuse_unknown(_EXPECT, "expect")
    rows, tables, rules, error = (node.get(key) for key in ("rows", "tables", "rules", "error"))
    others = tables.entries("tables") if tables else {}
    found = ExpectedResult(
        where=node.where,
        rows=_rows(rows, settings) if rows else None,
        tables={name: _rows(table, settings) for name, table in others.items()},
        rules={name: _counts(rule) for name, rule in (rules.entries("rules") if rules else {}).items()},
        dropped=_number(node.get("dropped")),
        quarantined=_number(node.get("quarantined")),
        late=_number(node.get("late")),
        error=_code(error, settings) if error else None,
    )
    return found if found.rows is not None or found.of_update else replace(found, rows=())


def _code(node: ConfigNode, settings: Settings) -> str:
    code = settings.text(node)
    if code not in CODES:
        raise node.bad(f"there is no error code {code!r}", nearest=nearest_names(code, CODES), todo="docs/error-codes.md lists them.")
    return code


def _counts(node: ConfigNode) -> tuple[int | None, int]:
    if not isinstance(node.value, dict):
        return None, _number(node) or 0
    node.refuse_unknown(_COUNTS, "the counts of a rule")
    return _number(node.get("passed")), _number(node.get("failed")) or 0


def _number(node: ConfigNode | None) -> int | None:
    if node is None:
        return None
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
        raise node.bad(f"a number of rows is expected here, got {node.text!r}")
    return node.value


def _texts(node: ConfigNode | None, settings: Settings, what: str) -> dict[str, str]:
    return {key: settings.text(value) for key, value in (node.entries(what) if node else {}).items()}


def _rows(node: ConfigNode | None, settings: Settings) -> tuple[Row, ...]:
    return tuple(
        {key: plain(value, settings) for key, value in row.entries("a row").items()} for row in (node.items("rows") if node else ())
    )


def plain(node: ConfigNode, settings: Settings) -> Any:
    """Return the value of a node without locations; variables in texts are resolved."""
    if isinstance(node.value, dict):
        return {key: plain(value, settings) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [plain(value, settings) for value in node.value]
    return settings.value(node)


def refuse_misspelt(node: ConfigNode, known: frozenset[str], what: str, *, only: Collection[str] | None = None) -> None:
    """Raise CONFIG_INVALID for a key that is not in `known` and looks like a known key. `only`: the keys that are checked."""
    for key, child in node.entries(what).items():
        near = nearest_names(key, known) if key not in known and (only is None or key in only) else ()
        if near:
            raise child.bad(f"{what} has no key {key!r}", nearest=near)


def wrong_counts(counts: Mapping[str, RuleCount], expected: Mapping[str, tuple[int | None, int]]) -> Sequence[str]:
    """Return a sentence for each expectation whose counts differ from the expected ones."""
    lines = []
    for name, (passed, failed) in expected.items():
        found = counts.get(name)
        if found is None:
            near = nearest_names(name, counts)
            lines.append(f"rule {name}: the dataset has no such expectation" + (f"; did you mean {near[0]}?" if near else ""))
        elif failed != found.failed or passed not in (None, found.passed):
            wanted = f"{failed} failed" if passed is None else f"{passed} passed and {failed} failed"
            lines.append(f"rule {name}: expected {wanted}, found {found.passed} passed and {found.failed} failed")
    return lines
