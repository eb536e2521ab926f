"""The local settings of a project: `[tool.lakelet]` of its pyproject.toml."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.text import listed
from lakelet.config.yaml_tree import shown_path

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_TEXTS = ("storage", "master", "worker_python", "catalog", "schema", "target")
_PAIRS = ("map", "table")
_SWITCHES = ("report",)
_ADDRESSES = ("publish", "catalogs")
_KEYS = (*_TEXTS, "sources", "packages", "parameters", *_ADDRESSES, *_PAIRS, *_SWITCHES)
PACKAGES = ("kafka",)
"""Names that `packages` may hold: jars of Spark's that are fetched for the project (`spark.launch.environment`)."""
CATALOGS = {
    "hive": (re.compile(r"thrift://[^\s/@,]+:\d+(,\s*thrift://[^\s/@,]+:\d+)*"), "thrift://localhost:9083"),
    "uc": (re.compile(r"https?://(\[[\da-fA-F:.]+\](:\d+)?|[^\s/@?#\[\]]+)(/[^\s@?#]*)?"), "http://localhost:8080"),
}
"""Kinds of catalogs that `publish` and `catalogs` may name: the form of an address, and an example."""
_EXAMPLES = {
    "map": 'For example: map = { "/Volumes/main/raw" = "data" }',
    "table": 'For example: table = { "main.sales.orders" = "data/orders" }',
}


@dataclass(frozen=True)
class ToolSettings:
    """The values of `[tool.lakelet]`; None or empty where nothing is written. `present`: the section exists; `where`: its location.

    `report`: an update writes the page at its end. `packages`: names in `PACKAGES`. `publish`: addresses by kinds in `CATALOGS`.
    `catalogs`: those in which tables of others are looked up; the ones of `publish` where the key is not written.
    """

    present: bool = False
    storage: str | None = None
    master: str | None = None
    worker_python: str | None = None
    catalog: str | None = None
    schema: str | None = None
    target: str | None = None
    sources: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    publish: Mapping[str, str] = field(default_factory=dict)
    catalogs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    maps: tuple[tuple[str, str], ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    where: Location | None = None
    report: bool = False


def read_tool_settings(root: Path, cwd: Path) -> ToolSettings:
    """Read `root/pyproject.toml`; without the file or the section all is empty.

    Raises CONFIG_INVALID with file and line for a syntax error, an unknown key or a wrong type.
    """
    path = root / "pyproject.toml"
    if not path.is_file():
        return ToolSettings()
    shown = shown_path(path, cwd)
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        section = tomllib.loads(text).get("tool", {}).get("lakelet")
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = Location(shown, int(line.group(1)) if line else 1)
        raise LakeletError("CONFIG_INVALID", f"{shown} is not valid TOML", where=where, why=str(error)) from error
    if section is None:
        return ToolSettings()
    return _settings(section, text, shown)


def _settings(section: Mapping[str, Any], text: str, shown: str) -> ToolSettings:
    def bad(key: str, what: str, **more: Any) -> LakeletError:
        return LakeletError("CONFIG_INVALID", what, where=Location(shown, _line_of(key, text)), **more)

    for key, value in section.items():
        if key not in _KEYS:
            raise bad(key, f"[tool.lakelet] has no key {key!r}", nearest=nearest_names(key, _KEYS))
        if key in _TEXTS and not isinstance(value, str):
            raise bad(key, f"{key!r} in [tool.lakelet] must be text")
        if key in _SWITCHES and not isinstance(value, bool):
            raise bad(key, f"{key!r} in [tool.lakelet] must be true or false")
    sources = section.get("sources", [])
    if isinstance(sources, str):
        sources = [sources]
    if not isinstance(sources, list) or not all(isinstance(s, str) for s in sources):
        raise bad("sources", "'sources' in [tool.lakelet] must be a list of paths")
    packages = section.get("packages", [])
    if not isinstance(packages, list) or not all(isinstance(one, str) for one in packages):
        raise bad("packages", "'packages' in [tool.lakelet] must be a list of names", todo='For example: packages = ["kafka"]')
    for name in packages:
        if name not in PACKAGES:
            todo = f"Lakelet fetches {listed(PACKAGES, len(PACKAGES))}. Jars of other packages go into the folder `jars` of pyspark."
            raise bad("packages", f"there is no package {name!r}", nearest=nearest_names(name, PACKAGES), todo=todo)
    publish = _addresses(section.get("publish", {}), "publish", bad)
    catalogs = _addresses(section.get("catalogs", publish), "catalogs", bad)
    parameters = section.get("parameters", {})
    flat = dict(_flat(parameters)) if isinstance(parameters, dict) else None
    if flat is None or not all(isinstance(v, (str, int, float)) for v in flat.values()):
        raise bad("parameters", "'parameters' in [tool.lakelet] must be a table of texts")
    texts: dict[str, Any] = {key: section.get(key) for key in _TEXTS}
    as_text = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in flat.items()}
    pairs: dict[str, tuple[tuple[str, str], ...]] = {}
    for key in _PAIRS:
        value = section.get(key, {})
        entries = dict(_flat(value)) if isinstance(value, dict) else None
        if entries is None or not all(isinstance(v, str) and v.strip() and k.strip() for k, v in entries.items()):
            raise bad(key, f"{key!r} in [tool.lakelet] must be a table of texts", todo=_EXAMPLES[key])
        pairs[key] = tuple(entries.items())
    where = Location(shown, _line_of("map" if section.get("map") else "table", text))
    more: Mapping[str, Any] = {"maps": pairs["map"], "tables": pairs["table"], "where": where, "report": section.get("report", False)}
    lists: Mapping[str, Any] = {"sources": tuple(sources), "packages": tuple(dict.fromkeys(packages))}
    return ToolSettings(True, publish=publish, catalogs=catalogs, parameters=as_text, **lists, **texts, **more)


def _addresses(value: Any, key: str, bad: Callable[..., LakeletError]) -> Mapping[str, str]:
    """The addresses of catalogs that a key has, by their kinds. Raises CONFIG_INVALID, which `bad` makes."""
    example = f'For example: {key} = {{ hive = "thrift://localhost:9083" }}'
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise bad(key, f"{key!r} in [tool.lakelet] must be a table of addresses", todo=example)
    for kind, address in value.items():
        if kind not in CATALOGS:
            raise bad(key, f"{key!r} knows no catalog {kind!r}", nearest=nearest_names(kind, CATALOGS), todo=example)
        form, address_example = CATALOGS[kind]
        if not form.fullmatch(address):
            todo = f"For example: {address_example} (without a user and a password)"
            raise bad(key, f"{key!r} has an address of {kind!r} that is not one", todo=todo)
    return value


def package_missing(name: str, where: Location | None = None) -> LakeletError:
    """The error for code that needs a package of `PACKAGES` which its session does not have."""
    return LakeletError(
        "PACKAGE_MISSING",
        f"the data source {name!r} needs the package {name!r}, which this session does not have",
        where=where,
        why="Its jars belong neither to pyspark nor to Lakelet, and nothing is fetched that the project does not name.",
        todo=f'Write packages = ["{name}"] below [tool.lakelet] into the pyproject.toml of the project: the next command fetches them. '
        "A `lakelet watch` or a notebook that is running has to be started again.",
    )


def setting_line(root: Path, key: str) -> int:
    """The line of `root/pyproject.toml` on which a key of `[tool.lakelet]` stands."""
    return _line_of(key, (root / "pyproject.toml").read_text(encoding="utf-8", errors="replace"))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys of nested tables joined by dots: TOML reads `a.b = 1` as a table in a table."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _line_of(key: str, text: str) -> int:
    """The line on which `key` stands in the section; the section's own line for a sub-table or where it cannot be found."""
    inside = False
    first = 1
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[+\s*tool\.lakelet\.{re.escape(key)}\b", line):
            return number
        if re.match(r"\s*\[", line):
            inside = bool(re.match(r"\s*\[\s*tool\.lakelet\s*\]", line))
            first = number if inside else first
        elif inside and re.match(rf"\s*\"?{re.escape(key)}\"?\s*[.=]", line):
            return number
    return first
