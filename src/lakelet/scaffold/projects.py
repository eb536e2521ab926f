"""New projects: the templates, which are projects of this repository, and writing one of them into a folder.

In a checkout the templates are the folders of the repository itself. A wheel holds the same folders below `shipped` (pyproject.toml,
a build hook), so nothing exists twice.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.scaffold.files import NewFile, invalid_name, library_files, write_new

DEFAULT = "starter"
_SHIPPED = Path(__file__).with_name("shipped")
_CHECKOUT = Path(__file__).parents[3]
_LINK_OUT = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")
"""A Markdown link to a path above the folder; a copy keeps only its text."""
_GENERATED = frozenset({"__pycache__", ".lakelet", ".pytest_cache", ".ruff_cache", ".DS_Store"})
_PROJECT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_GENERATED_LANDING = "landing"
_CONTACT_CENTER_TESTS = ("agents", "bronze_router_logs", "gold_workforce", "gold_conversations", "silver_events")


@dataclass(frozen=True)
class StartingPoint:
    """One template.

    Attributes:
        about: one line on what it does.
        parts: folders and files of the repository, each with its path in the new project; `.` is the project's own folder.
        next_commands: commands to type in the new project's folder, up to a run and its tests.
        renamed: whether the template's name in the files is replaced by the new project's.
        library: whether the project begins with the copy of `lakelet.transforms` that is deployed with it.
    """

    name: str
    about: str
    parts: Mapping[str, str]
    next_commands: tuple[str, ...]
    renamed: bool = False
    library: bool = False


_SHARED = {f"examples/{DEFAULT}/{name}": name for name in (".vscode", ".gitignore")}

_POINTS = (
    StartingPoint(
        DEFAULT,
        "events and customers of a shop: a few lines of JSON and CSV",
        {f"examples/{DEFAULT}": "."},
        ("lakelet run", "lakelet test"),
        renamed=True,
    ),
    StartingPoint(
        "contact-center",
        "log entries of a contact centre: 26 tables in three layers",
        {
            "examples/contact-center": ".",
            **{name: name for name in ("databricks.yml", "resources", "pipelines", "expectations", "docs/system-a.md")},
            **{f"tests/pipelines/test_{name}.py": f"tests/test_{name}.py" for name in _CONTACT_CENTER_TESTS},
            **_SHARED,
        },
        ("pip install orjson chispa", "python generate.py sample", "lakelet run", "lakelet test"),
    ),
    StartingPoint(
        "web",
        "web events from CSV files, personal data masked",
        {"examples/web": ".", "tests/oracles/web.py": "tests/oracle.py", **_SHARED},
        ("export LAKELET_SECRET_WEB_PII_KEY='a key of at least 32 bytes'", "python generate.py 1", "lakelet run", "lakelet test"),
        library=True,
    ),
    StartingPoint(
        "factory",
        "movements of boxes in three factories: cycle times, throughput, bottlenecks",
        {"examples/factory": ".", "tests/oracles/factory.py": "tests/oracle.py", **_SHARED},
        ("python generate.py landing", "lakelet run", "lakelet test"),
    ),
    StartingPoint(
        "audit",
        "audit logs of a cloud account: events by day, denied calls, sensitive changes",
        {"examples/audit": ".", "tests/oracles/audit.py": "tests/oracle.py", **_SHARED},
        ("python generate.py landing", "lakelet run", "lakelet test"),
    ),
)


def project_name(text: str) -> str:
    """Return the name of a project as used for bundle, schema and pipeline: lower case, `_` for `-`. Raises NAME_INVALID."""
    if not _PROJECT_NAME.fullmatch(text):
        raise invalid_name(
            text, "a project", "letters, digits, _ and -, first a letter", re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_0123456789")
        )
    return text.lower().replace("-", "_")


def starting_points() -> Mapping[str, StartingPoint]:
    """Return all templates by name, the default first."""
    return {point.name: point for point in _POINTS}


def starting_point(name: str) -> StartingPoint:
    """Return the template with a name. Raises USAGE with the nearest name."""
    known = starting_points()
    if name not in known:
        what = f"there is no template {name!r}; there are {', '.join(known)}"
        raise LakeletError("USAGE", what, nearest=nearest_names(name, known))
    return known[name]


def files_of(point: StartingPoint, *, name: str) -> list[NewFile]:
    """Return the files of a project called `name` made from a template, without what runs of it have written."""
    root = _root()
    found: dict[PurePosixPath, NewFile] = {}
    for source, target in point.parts.items():
        for path, text in _texts(root / source):
            at = PurePosixPath(target) / path
            kept = _LINK_OUT.sub(r"\1", text) if at.suffix == ".md" else text
            found[at] = NewFile(at, kept.replace(point.name, name) if point.renamed and _has_name(at) else kept)
    return [*found.values(), *(library_files() if point.library else ())]


def rules_loader() -> NewFile:
    """Return the module that gives the rules of a project's rule files to its decorators; every project has the same."""
    path = "expectations/__init__.py"
    return NewFile.of(path, (_root() / path).read_text(encoding="utf-8"))


def _root() -> Path:
    return _CHECKOUT if (_CHECKOUT / "examples" / DEFAULT).is_dir() else _SHIPPED


def _texts(source: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield path below `source` and text of each file of a folder, or of the single file `source`."""
    if source.is_file():
        yield PurePosixPath(), source.read_text(encoding="utf-8")
        return
    for file in sorted(source.rglob("*")):
        below = PurePosixPath(file.relative_to(source).as_posix())
        made = _GENERATED.intersection(below.parts) or below.parts[0] == _GENERATED_LANDING
        if file.is_file() and not made:
            yield below, file.read_text(encoding="utf-8")


def _has_name(path: PurePosixPath) -> bool:
    """Return whether a file contains the project's name."""
    return len(path.parts) == 1 and path.suffix in (".md", ".yml")


@dataclass(frozen=True)
class NewProject:
    """A new project: its folder, the files that were written, and its template. `left_out`: files with checks that cannot be made here."""

    folder: Path
    written: tuple[Path, ...]
    point: StartingPoint
    left_out: tuple[Path, ...] = ()


def new_project(folder: Path, begin_with: str = DEFAULT) -> NewProject:
    """Write a project into `folder`, which is made if it does not exist and gives the project its name.

    Raises NAME_INVALID, USAGE for an unknown template, and FILE_EXISTS for a folder with any file that an interrupted attempt has not
    written.
    """
    folder = folder.expanduser().absolute().resolve()
    point = starting_point(begin_with)
    everything = files_of(point, name=project_name(folder.name))
    left_out = () if can_check() else tuple(file for file in everything if _checks_tables(file))
    files = [file for file in everything if file not in left_out]
    if folder.exists():
        _refuse_used(folder, files)
    return NewProject(folder, write_new(folder, files), point, tuple(folder / file.path for file in left_out))


def can_check() -> bool:
    """Return whether Great Expectations, which makes the checks of whole tables, is installed; looks without importing it."""
    return importlib.util.find_spec("great_expectations") is not None


def _checks_tables(file: NewFile) -> bool:
    """Return whether a file is one of rules and holds checks of whole tables; a template keeps them apart from the rules of rows."""
    return file.path.parts[0] == "expectations" and file.path.suffix == ".yml" and "\n    checks:" in file.text


def _refuse_used(folder: Path, files: list[NewFile]) -> None:
    """Raise FILE_EXISTS for a file, for a folder with a file that is not of the new project, and for one with all of its files."""
    if not folder.is_dir():
        raise LakeletError("FILE_EXISTS", f"{folder} is a file", todo="Choose another name.")
    own = {folder / file.path for file in files}
    existing = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))
    foreign = next((path for path in existing if path not in own), None)
    if foreign is None and all(path.exists() for path in own):
        foreign = folder / files[0].path
    if foreign is not None:
        raise LakeletError(
            "FILE_EXISTS",
            f"{folder} is not empty: it holds {foreign.relative_to(folder)}; nothing was written",
            todo="Choose another name. What lies there already becomes a pipeline by: lakelet init",
        )
