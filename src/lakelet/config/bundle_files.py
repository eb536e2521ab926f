"""The files of a bundle, `databricks.yml` and what it includes, as one tree with a deployment target laid over it.

References stay as they are written. What they mean is the matter of who reads the tree: a local run (`bundle.py`) or a deployment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakelet.base.errors import nearest_names
from lakelet.config.bundle_python import python_section, with_python
from lakelet.config.yaml_tree import (
    ConfigNode,
    Problems,
    Remark,
    changed,
    children,
    elements,
    mapping,
    merge,
    names_beside,
    read_yaml,
    shown_path,
    with_entries,
)

BUNDLE_FILES = ("databricks.yml", "databricks.yaml", "bundle.yml", "bundle.yaml")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOP_KEYS = _words(
    "artifacts bundle definitions environments experimental include permissions presets python resources run_as scripts sync targets"
    " variables workspace"
)
TARGET_KEYS = (TOP_KEYS - {"definitions", "environments", "include", "python", "scripts", "targets"}) | {
    *("cluster_id", "compute_id", "default", "git", "mode", "variables")
}
VARIABLE_KEYS = frozenset({"default", "description", "lookup", "type", "value"})
PIPELINE_KEYS = _words(
    "allow_duplicate_names budget_policy_id cascade_on_destroy catalog channel clusters configuration continuous deployment"
    " development dry_run edition environment event_log filters gateway_definition id ingestion_definition libraries lifecycle name"
    " notifications parameters parent_path permissions photon restart_window root_path run_as schema serverless"
    " serverless_compute_id storage tags target trigger usage_policy_id"
)
_OVERLAID = ("artifacts", "bundle", "permissions", "presets", "resources", "sync", "workspace")
"""What a target adds to the bundle key by key, lists by appending."""

LISTS_BY_KEY = {
    ("jobs", "tasks"): "task_key",
    ("jobs", "job_clusters"): "job_cluster_key",
    ("jobs", "environments"): "environment_key",
    ("jobs", "parameters"): "name",
    ("pipelines", "clusters"): "label",
}
"""Lists whose items have a key: an item of the target is laid over the one with the same key."""


@dataclass(frozen=True)
class BundleFiles:
    """A bundle as it is written.

    Attributes:
        root: its folder.
        tree: everything merged, references as they are written.
        target: name of the deployment target; None for a bundle without targets.
        settings: what is written for the target; None without one.
        targets: all targets by name.
        parts: the tree of each file, in the order in which they are merged.
        base: the files merged, without a target.
        cwd: files in messages are named relative to it.
        remarks: warnings of the bundle's Python.
    """

    root: Path
    tree: ConfigNode
    target: str | None
    settings: ConfigNode | None
    targets: Mapping[str, ConfigNode]
    parts: tuple[ConfigNode, ...]
    base: ConfigNode
    cwd: Path
    remarks: tuple[Remark, ...] = ()

    @property
    def mode(self) -> str | None:
        """`development` or `production`, None if the target does not say."""
        node = self.settings.get("mode") if self.settings else None
        return str(node.value) if node else None

    def for_target(self, target: str | None, problems: Problems) -> BundleFiles:
        """The same files with a target of the bundle laid over them."""
        settings = self.targets[target] if target is not None else None
        tree = _overlaid(self.base, settings, problems) if settings is not None else self.base
        with problems.collected():
            tree = _with_overrides_file(tree, self.root, target, self.cwd)
        return replace(self, tree=_merged_by_key(tree), target=target, settings=settings)

    def with_python(self, given: Mapping[str, str]) -> BundleFiles:
        """The bundle with what its Python makes and changes.

        `given`: values of variables that go before those of the files. Raises BUNDLE_PYTHON_MISSING where the package that runs it is
        missing, BUNDLE_PYTHON_FAILED where it fails, CONFIG_INVALID for a section of another form.
        """
        section = python_section(self.tree)
        if section is None:
            return self
        tree, remarks = with_python(section, self.tree, self.root, self.target, given=given, cwd=self.cwd)
        return replace(self, tree=tree, remarks=remarks)


def read_bundle_files(file: Path, target: str | None, *, cwd: Path, problems: Problems) -> BundleFiles:
    """Read a bundle file with everything it includes, for a deployment target, None for the default one.

    Mistakes that leave the rest readable go to `problems`. Raises CONFIG_INVALID for a bundle file that is not YAML, and for an unknown
    target.
    """
    parts = _parts(file, cwd, problems)
    base = parts[0]
    for more in parts[1:]:
        with problems.collected():
            base = merge(base, more)
    targets = children(base.get("targets") or base.get("environments"))
    read = BundleFiles(file.parent, base, None, None, targets, tuple(parts), base, cwd)
    return read.for_target(_chosen_target(base, targets, target), problems)


def _parts(file: Path, cwd: Path, problems: Problems) -> list[ConfigNode]:
    """The trees of a bundle file and of those that it includes."""
    parts = [read_yaml(file, shown=shown_path(file, cwd))]
    _check_top(parts[0], problems)
    included: Sequence[Path] = ()
    with problems.collected():
        included = list(_included_files(parts[0], file.parent))
    for extra in included:
        with problems.collected():
            more = read_yaml(extra, shown=shown_path(extra, cwd))
            _check_top(more, problems)
            parts.append(more)
    return parts


def _check_top(tree: ConfigNode, problems: Problems) -> None:
    known = _known_top_keys(tree)
    for key, child in tree.entries("a bundle file").items():
        if key not in known:
            problems.bad(child, f"a bundle file has no key {key!r}", nearest=nearest_names(key, known))


def bundle_file(folder: Path) -> Path | None:
    """Return the bundle file of a project folder, None when it has none.

    A `bundle.yml` without a key `bundle` is a file of another tool.
    """
    return next((folder / name for name in BUNDLE_FILES if (folder / name).is_file() and _names_bundle(folder / name)), None)


def synced_paths(sync: ConfigNode | None) -> list[tuple[ConfigNode, Path]]:
    """The entries of `sync.paths`, each with the folder that it names, relative to the file it is written in."""
    written = elements(sync.get("paths") if sync else None)
    return [(node, Path(os.path.normpath(node.file.parent / node.text))) for node in written]


def _names_bundle(file: Path) -> bool:
    return not file.name.startswith("bundle.") or re.search(r"^bundle\s*:", file.read_text("utf-8", "replace"), re.MULTILINE) is not None


def variables_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The values that an environment gives to variables of a bundle."""
    return {name: value for key, value in environ.items() if (name := key.removeprefix("BUNDLE_VAR_")) != key}


def _known_top_keys(tree: ConfigNode) -> frozenset[str]:
    """The keys that a bundle file may have: those of the format, and the custom ones that people keep YAML anchors in."""
    if set(tree.entries("a bundle file")) <= TOP_KEYS:
        return TOP_KEYS
    blocks = re.split(r"^(?=[^\s#])", tree.file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return TOP_KEYS | {block.split(":", 1)[0].strip("'\" ") for block in blocks if re.search(r"[:\-]\s+&\w", block)}


def _included_files(tree: ConfigNode, root: Path) -> Iterator[Path]:
    """The files that `include` of a bundle file names, in order. Raises CONFIG_INVALID for one that does not exist."""
    include = tree.get("include")
    for entry in include.items("include") if include else []:
        pattern = entry.text
        hits = sorted(root.glob(pattern)) if pattern and not pattern.startswith("/") else []
        if not hits and not any(c in pattern for c in "*?["):
            raise entry.bad(f"the included file {pattern!r} does not exist", nearest=nearest_names(pattern, names_beside(root / pattern)))
        yield from (hit for hit in hits if hit.suffix in (".yml", ".yaml", ".json") and hit.name not in BUNDLE_FILES)


def _chosen_target(tree: ConfigNode, choices: Mapping[str, ConfigNode], wanted: str | None) -> str | None:
    """The target that is wanted, else the default one, else the first; None for a bundle without. Raises CONFIG_INVALID."""
    if wanted is not None and wanted not in choices:
        known = ", ".join(choices) or "none"
        raise tree.bad(f"there is no deployment target {wanted!r}", nearest=nearest_names(wanted, choices), todo=f"Known targets: {known}")
    if wanted is not None or not choices:
        return wanted
    marked = [name for name, node in choices.items() if (default := node.get("default")) and default.value is True]
    if len(marked) > 1:
        raise choices[marked[1]].bad(f"several targets are marked as default: {', '.join(marked)}")
    return marked[0] if marked else next(iter(choices))


def _overlaid(tree: ConfigNode, target: ConfigNode, problems: Problems) -> ConfigNode:
    """The tree with what the target says laid over it. A target's `run_as` replaces the bundle's, its variables are values."""
    over = {key: node for key in _OVERLAID if (node := target.get(key)) is not None}
    merged = merge(tree, mapping(over, target))
    run_as, git = target.get("run_as"), target.get("git")
    if run_as is not None:
        merged = with_entries(merged, run_as=run_as)
    if git is not None:
        bundle = merged.get("bundle") or mapping({}, target)
        merged = with_entries(merged, bundle=with_entries(bundle, git=git))
    for name, node in children(target.get("variables")).items():
        with problems.collected():
            merged = _with_variables(merged, {name: node})
    return merged


def _merged_by_key(tree: ConfigNode) -> ConfigNode:
    for (kind, field), key in LISTS_BY_KEY.items():
        resources = tree.get("resources", kind)
        for name, resource in children(resources).items():
            if len(elements(resource.get(field))) > 1:
                tree = changed(tree, ("resources", kind, name, field), lambda items, key=key: _joined(items, key))  # type: ignore[misc]
    return tree


def _joined(items: ConfigNode, key: str) -> ConfigNode:
    """The list with items of the same key merged into the first of them."""
    kept: dict[str, ConfigNode] = {}
    for at, item in enumerate(elements(items)):
        named = item.get(key)
        name = named.text if named else f"\0{at}"
        kept[name] = merge(kept[name], item) if name in kept else item
    return replace(items, value=list(kept.values()))


def _with_variables(tree: ConfigNode, values: Mapping[str, ConfigNode]) -> ConfigNode:
    """Give variables their `value`; a target writes either the value itself or a mapping with `default`."""
    declared = tree.get("variables")
    variables = dict(declared.entries("variables")) if declared else {}
    for name, node in values.items():
        if name not in variables:
            raise node.bad(f"the variable {name!r} is not declared", nearest=nearest_names(name, variables))
        known = variables[name].value or {}
        is_definition = isinstance(node.value, dict) and node.value and set(node.value) <= VARIABLE_KEYS
        variables[name] = replace(variables[name], value={**known, **(node.value if is_definition else {"value": node})})
    return replace(tree, value={**tree.value, "variables": replace(tree, value=variables)})


def _with_overrides_file(tree: ConfigNode, root: Path, target: str | None, cwd: Path) -> ConfigNode:
    """Apply `.databricks/bundle/<target>/variable-overrides.json`, the file for values of one user."""
    path = root / ".databricks" / "bundle" / (target or "default") / "variable-overrides.json"
    if not path.is_file():
        return tree
    values = read_yaml(path, shown=shown_path(path, cwd)).entries("variable overrides")
    plain = {k: replace(v, text=v.text if isinstance(v.value, str) else json.dumps(v.value, default=str)) for k, v in values.items()}
    return _with_variables(tree, plain)
