"""The project file of Spark's own pipelines tool, read as a bundle with one pipeline (DS-27)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.bundle import Bundle
from lakelet.config.yaml_tree import ConfigNode, Remark, read_yaml, shown_path

SPARK_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")
_PREVIEW = "pipeline.yml"  # its name before Spark 4.1 was out; others use it too, so its content decides
_KEYS = frozenset({"name", "catalog", "database", "schema", "configuration", "libraries", "definitions", "storage"})
_ENGINE = re.compile(
    r"spark\.(sql\.(extensions|catalog(\..+)?|warehouse\.dir)|jars(\..+)?|master|remote|app\.name|(driver|executor|submit|eventLog|connect)\..+)"
)

"""Something that has no effect in a local run, and where it is written."""


def spark_file(folder: Path) -> Path | None:
    """The project file of Spark's tool in a folder; None when it has none."""
    for name in SPARK_FILES:
        if (folder / name).is_file():
            return folder / name
    file = folder / _PREVIEW
    return file if file.is_file() and _lists_sources(file) else None


def _lists_sources(file: Path) -> bool:
    """Whether a file has the list of globs that only a project file of Spark's tool has."""
    with suppress(LakeletError):
        tree = read_yaml(file, shown=file.name)
        lists = tree.get("libraries") or tree.get("definitions")
        return lists is not None and isinstance(lists.value, list) and any(library.get("glob", "include") for library in lists.value)
    return False


def load_spark_file(file: Path, *, cwd: Path, environ: Mapping[str, str]) -> tuple[Bundle, tuple[Remark, ...]]:
    """Read the file; what has no effect here is returned as remarks.

    Raises CONFIG_INVALID with file and line for whatever does not fit the format, and where a folder holds both spellings of its name.
    """
    tree = read_yaml(file, shown=shown_path(file, cwd))
    both = [name for name in SPARK_FILES if (file.parent / name).is_file()]
    if len(both) > 1:
        raise tree.bad(f"the folder holds {' and '.join(both)}", todo="Keep one of them.")
    what = "a project file of Spark's pipelines"
    tree.refuse_unknown(_KEYS, what)
    spec = {key: node for key in ("name", "catalog", "configuration") if (node := tree.get(key))}
    schema = _one_of(tree, "database", "schema")
    libraries = _one_of(tree, "libraries", "definitions")
    if schema:
        spec["schema"] = schema
    if libraries:
        spec["libraries"] = libraries
        for entry in libraries.items("libraries"):
            entry.refuse_unknown(frozenset({"glob"}), "a library")
    remarks = list(_remarks(tree))
    if "configuration" in spec:
        entries = spec["configuration"].entries("configuration")
        kept = {key: node for key, node in entries.items() if not _ENGINE.fullmatch(key)}
        spec["configuration"] = replace(spec["configuration"], value=kept)
    name = spec["name"].text if "name" in spec else file.parent.name
    pipelines = replace(tree, value={name: replace(tree, value=spec)})
    as_bundle = replace(tree, value={"resources": replace(tree, value={"pipelines": pipelines})})
    return Bundle(file.parent, as_bundle, None, environ), tuple(remarks)


def _one_of(tree: ConfigNode, first: str, second: str) -> ConfigNode | None:
    """The value of a key that has two names. Raises CONFIG_INVALID if both are there."""
    one, other = tree.get(first), tree.get(second)
    if one and other:
        raise other.bad(f"{first!r} and {second!r} mean the same", todo="Keep one of them.")
    return one or other


def _remarks(tree: ConfigNode) -> Iterator[Remark]:
    storage = tree.get("storage")
    if storage:
        yield (
            f"storage: {storage.text} is where Spark's tool keeps its checkpoints; here --storage says where the state lies",
            storage.where,
        )
    configuration = tree.get("configuration")
    for key, node in (configuration.entries("configuration") if configuration else {}).items():
        if _ENGINE.fullmatch(key):
            yield f"{key} sets up Spark itself, which is done before; it is left out", node.where
