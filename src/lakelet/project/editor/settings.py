"""Writes stubs and settings of type checkers into a project. Lakelet's own files are replaced by those of this version, no others."""

from __future__ import annotations

from pathlib import Path

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError
from lakelet.config.tool_settings import tomllib
from lakelet.files.durable import write_atomically
from lakelet.project.editor.generated import generated_stubs

_STUBS = Path(__file__).with_name("stubs")
"""Folder with the stubs of what has no functions of its own here, laid out as type checkers read them."""

TYPINGS = "typings"
_OWN = "# Written by lakelet "
_PYRIGHT = {"reportMissingModuleSource": "none", "reportWildcardImportFromLibrary": "none"}
_MYPY = {"mypy_path": TYPINGS, "plugins": "lakelet.project.editor.mypy_plugin"}
_MYPY_FILES = ("mypy.ini", ".mypy.ini")
_PYRIGHT_FILE = "pyrightconfig.json"


def write_settings(root: Path) -> list[Path]:
    """Make type checkers find the stubs in the project at `root`; return the files that were written, in order.

    The stubs go to `typings/`, where Pylance and pyright look by themselves. What else they and mypy need is added to `pyproject.toml`
    where there is one without a table for the checker. A second call writes nothing, unless Lakelet's version is different.
    Raises USAGE if there is no such folder, STORAGE_FAILED where the disk refuses.
    """
    if not root.is_dir():
        raise LakeletError("USAGE", f"{root} is not a folder", todo="Name the folder of the project.")
    written = [target for path, text in sorted(stubs().items()) if (target := _written(root / TYPINGS / path, text)) is not None]
    project = root / "pyproject.toml"
    if project.is_file() and (tables := _missing_tables(root, project)):
        text = project.read_text(encoding="utf-8")
        write_atomically(project.resolve(), f"{text.rstrip()}\n{tables}")  # a link stays one
        written.append(project)
    return written


def stubs() -> dict[str, str]:
    """Return the text of each stub by its path below `typings/`, as type checkers look for it."""
    kept = {source.relative_to(_STUBS).as_posix(): source.read_text(encoding="utf-8") for source in _STUBS.rglob("*.pyi")}
    return {**kept, **generated_stubs()}


def _written(target: Path, stub: str) -> Path | None:
    """Write a stub into the project; return its path, or None where it is up to date or the file is not Lakelet's."""
    text = f"{_OWN}{VERSION}. `lakelet init --editor` writes it again.\n{stub}"
    if target.exists() and (found := target.read_text(encoding="utf-8")) and (found == text or not found.startswith(_OWN)):
        return None
    write_atomically(target, text)
    return target


def _missing_tables(root: Path, project: Path) -> str:
    """TOML of the tables that the project's checkers lack. A checker that is set up elsewhere, or already, is left alone."""
    try:
        tools = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return ""
    tables = []
    if "pyright" not in tools and "basedpyright" not in tools and not (root / _PYRIGHT_FILE).exists():
        tables.append(_table("pyright", _PYRIGHT))
    if "mypy" not in tools and not any((root / name).exists() for name in _MYPY_FILES):
        tables.append(_table("mypy", _MYPY))
    return "".join(tables)


def _table(name: str, values: dict[str, str]) -> str:
    return f"\n[tool.{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())
