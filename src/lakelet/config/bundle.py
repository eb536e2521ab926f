"""Bundle files: `databricks.yml` and what it includes, with one deployment target chosen.

Only what a local run needs is interpreted: included files, the target, variables, pipelines.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config import bundle_python
from lakelet.config.nodes import children, elements, scalar
from lakelet.config.references import REFERENCE, References, Within, below, field_of, full_name, steps
from lakelet.config.yaml_tree import Node, Remark, merge, read_yaml, shown_path

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
_MODES = ("development", "production")
VARIABLE_KEYS = frozenset({"default", "description", "lookup", "type", "value"})
PIPELINE_KEYS = _words(
    "allow_duplicate_names budget_policy_id cascade_on_destroy catalog channel clusters configuration continuous deployment"
    " development dry_run edition environment event_log filters gateway_definition id ingestion_definition libraries lifecycle name"
    " notifications parameters parent_path permissions photon restart_window root_path run_as schema serverless"
    " serverless_compute_id storage tags target trigger usage_policy_id"
)
_OPEN = re.compile(r"\$\{([A-Za-z][\w.\-\[\]]*)\}")


@dataclass(frozen=True)
class Bundle:
    """A bundle with one deployment target chosen: `tree` is everything merged, `target` None when the bundle has no targets.

    `settings`: what the target says of itself, such as its `mode`. `remarks`: warnings of the bundle's Python. `without_python`: why
    that was not run, where `tree` is what the files alone declare.
    """

    root: Path
    tree: Node
    target: str | None
    environ: Mapping[str, str]
    settings: Node | None = None
    remarks: tuple[Remark, ...] = ()
    without_python: LakeletError | None = None

    def pipelines(self) -> Mapping[str, Node]:
        """The pipelines by resource key. Mappings and lists of variables are filled in, texts are as they are written."""
        found = self.tree.get("resources", "pipelines")
        return {key: self._with_complex(node) for key, node in found.entries("resources.pipelines").items()} if found else {}

    @property
    def name(self) -> str:
        node = self.tree.get("bundle", "name")
        return self.text(node) if node else self.root.name

    @cached_property
    def synced(self) -> Path:
        """The folder that lies at `workspace.file_path`: the bundle's, or the one above it that holds all of `sync.paths`."""
        paths = [path for node, path in synced_paths(self.tree.get("sync")) if "${" not in node.text and path.is_dir()]
        return Path(os.path.commonpath([self.root, *paths]))

    def development(self, pipeline: Node) -> bool | None:
        """Whether a pipeline runs in development mode; None if neither it nor the target declares it.

        A target of mode development puts its pipelines into it, unless its preset `pipelines_development` is false.
        """
        keys = ("presets", "pipelines_development")
        preset = (self.settings.get(*keys) if self.settings else None) or self.tree.get(*keys)
        locked = self.switch(preset) if preset else None
        mode = self._mode()
        if locked or (locked is None and mode == "development"):
            return True
        own = pipeline.get("development")
        if own is not None:
            return self.switch(own)
        return False if locked is False or mode == "production" else None

    def _mode(self) -> str | None:
        node = self.settings.get("mode") if self.settings else None
        if node is not None and node.value not in _MODES:
            raise node.bad(f"the mode of a target is {' or '.join(_MODES)}", nearest=nearest_names(node.text, _MODES))
        return str(node.value) if node else None

    def switch(self, node: Node) -> bool:
        """Return a boolean value, resolving variables. Raises CONFIG_INVALID for any other value."""
        text = str(node.value).lower() if isinstance(node.value, bool) else self.text(node).strip().lower()
        if text not in ("true", "false"):
            raise node.bad(f"true or false is expected here, got {text!r}")
        return text == "true"

    def text(self, node: Node) -> str:
        """A scalar as text, all its `${…}` resolved. Raises CONFIG_INVALID when it is not a scalar or a reference stays open."""
        if isinstance(node.value, (dict, list)):
            raise node.bad("a single value is expected here")
        text = self.partly(node)
        left = _OPEN.search(text)
        if left:
            known = [f"var.{name}" for name in (self.tree.get("variables") or replace(node, value={})).entries("variables")]
            raise node.bad(
                f"{left.group()} has no value in a local run",
                nearest=nearest_names(left.group(1), [*known, *_BUILT_IN]),
                todo="Write the value, or make it a variable with a default.",
            )
        return text

    def partly(self, node: Node) -> str:
        """Like `text`, but references that mean nothing locally (`${resources.…}`, `${secrets…}`) stay as they are written."""
        return self.filled(scalar(node.text, node)).text

    def filled(self, node: Node) -> Node:
        """A single value with its references filled in, like `partly`; a reference that stands alone keeps the type of what it means."""
        found = self._references.filled(node)
        if isinstance(found.value, (dict, list)):
            raise node.bad(f"{node.text} is not a single value")
        return found

    @cached_property
    def _references(self) -> References:
        return References(self._meaning, _refuse_circle)

    def _with_complex(self, node: Node, within: Within = ()) -> Node:
        """The tree with each mapping and list that a variable stands for in its place."""
        if isinstance(node.value, dict):
            return replace(node, value={key: self._with_complex(child, within) for key, child in node.value.items()})
        if isinstance(node.value, list):
            return replace(node, value=[self._with_complex(item, within) for item in node.value])
        text = node.value if isinstance(node.value, str) else ""
        if text.count("${") > 1:  # a reference may stand in the name of another one: ${var.${bundle.target}_libraries}
            with suppress(LakeletError):
                found = self._references.filled(node)
                return found if isinstance(found.value, (dict, list)) else node
        alone = REFERENCE.fullmatch(text)
        if alone is None or alone[1] in within:
            return node
        try:
            meant = self._meaning(alone[1], node)
        except LakeletError:  # an error of who needs the value
            return node
        found = self._with_complex(meant, (*within, alone[1])) if meant is not None else node
        return replace(found, where=node.where) if isinstance(found.value, (dict, list)) else node

    def _meaning(self, path: str, node: Node) -> Node | None:
        """What a reference stands for in a local run, None where it means nothing there. Raises CONFIG_INVALID for an unknown variable."""
        if path in _BUILT_IN:
            text = self._built_in(path)
            return scalar(text, node) if text is not None else None
        first, *rest = steps(path)
        if first == "var":
            return self._variable(rest, node)
        found = self._of_resource(*rest) if first == "resources" and len(rest) > 2 else below(self.tree.get(first), rest)
        if found is None and path == "bundle.name":
            return scalar(self.root.name, node)
        return found if found and not isinstance(found.value, (dict, list)) else None

    def _of_resource(self, kind: str, key: str, *path: str) -> Node | None:
        resource = self.tree.get("resources", kind, key)
        if resource is None:
            return None
        return full_name(resource, kind) if path == ("id",) else field_of(resource, kind, path)

    def _built_in(self, path: str) -> str | None:
        if path in ("workspace.file_path", "workspace.root_path"):
            return str(self.synced if path.endswith("file_path") else self.root)
        if path.startswith("bundle."):
            return self.target
        user = self.environ.get("USER") or self.environ.get("LOGNAME") or "local"
        return user if path.endswith(_WHOLE_NAME) else re.sub(r"\W", "_", user)

    def _variable(self, rest: list[str], node: Node) -> Node:
        name, *path = rest or [""]
        declared = self.tree.get("variables")
        variables = declared.entries("variables") if declared else {}
        if name not in variables:
            raise node.bad(f"the variable {name!r} is not declared", nearest=nearest_names(name, variables))
        definition = variables[name]
        from_environment = self.environ.get(f"BUNDLE_VAR_{name}")
        whole = definition.get("value") or definition.get("default") if from_environment is None else scalar(from_environment, node)
        if whole is None:
            why = "It is looked up in a workspace, which a local run does not do." if definition.get("lookup") else None
            raise node.bad(f"the variable {name!r} has no value", why=why, todo=f"Set BUNDLE_VAR_{name}, or give it a default.")
        found = below(whole, path)
        if found is None:
            raise node.bad(f"the variable {name!r} has no {'.'.join(path)!r}", nearest=nearest_names(path[-1], children(whole)))
        return found


def _refuse_circle(node: Node, path: str, circle: str) -> NoReturn:
    raise node.bad(f"${{{path}}} refers to itself", why=circle)


_BUILT_IN = _words(
    "bundle.target bundle.environment workspace.file_path workspace.root_path workspace.current_user.userName"
    " workspace.current_user.short_name workspace.current_user.domain_friendly_name workspace.current_user.id"
    " workspace.current_user.displayName"
)
_WHOLE_NAME = ("userName", "displayName")


def bundle_file(folder: Path) -> Path | None:
    """Return the bundle file of a project folder, None when it has none.

    A `bundle.yml` without a key `bundle` is a file of another tool.
    """
    return next((folder / name for name in BUNDLE_FILES if (folder / name).is_file() and _names_bundle(folder / name)), None)


def synced_paths(sync: Node | None) -> list[tuple[Node, Path]]:
    """The entries of `sync.paths`, each with the folder that it names, relative to the file it is written in."""
    written = elements(sync.get("paths") if sync else None)
    return [(node, Path(os.path.normpath(node.file.parent / node.text))) for node in written]


def _names_bundle(file: Path) -> bool:
    return not file.name.startswith("bundle.") or re.search(r"^bundle\s*:", file.read_text("utf-8", "replace"), re.MULTILINE) is not None


def load_bundle(file: Path, *, target: str | None, cwd: Path, environ: Mapping[str, str]) -> Bundle:
    """Read a bundle file with everything it includes and lay the deployment target over it.

    `target` None means the default one. Resources that the bundle makes by Python are among those of the tree; where the package that runs
    it is missing, they are left out. Raises CONFIG_INVALID with file and line for whatever does not fit the format, BUNDLE_PYTHON_FAILED
    where the bundle's Python fails.
    """
    tree = _checked_top(read_yaml(file, shown=shown_path(file, cwd)))
    for extra in included_files(tree, file.parent):
        tree = merge(tree, _checked_top(read_yaml(extra, shown=shown_path(extra, cwd))))
    targets = tree.get("targets") or tree.get("environments")
    choices = targets.entries("targets") if targets else {}
    chosen = choose_target(tree, choices, target)
    if chosen is not None:
        choices[chosen].refuse_unknown(TARGET_KEYS, f"the target {chosen!r}")
        tree = _with_target(tree, choices[chosen])
    tree = with_overrides_file(tree, file.parent, chosen, cwd)
    for name, variable in (tree.get("variables") or replace(tree, value={})).entries("variables").items():
        variable.refuse_unknown(VARIABLE_KEYS, f"the variable {name!r}")
    read = Bundle(file.parent, tree, chosen, environ, choices[chosen] if chosen is not None else None)
    return _with_python(read, cwd) if tree.get("python") or tree.get("experimental") else read


def variables_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The values that an environment gives to variables of a bundle."""
    return {name: value for key, value in environ.items() if (name := key.removeprefix("BUNDLE_VAR_")) != key}


def _with_python(read: Bundle, cwd: Path) -> Bundle:
    section = bundle_python.python_section(read.tree)
    if section is None:
        return read
    given = variables_of(read.environ)
    try:
        tree, remarks = bundle_python.with_python(section, read.tree, read.root, read.target, given=given, cwd=cwd)
    except LakeletError as missing:
        if missing.code != bundle_python.MISSING:
            raise
        return replace(read, without_python=missing)
    return replace(read, tree=tree, remarks=remarks)


def _checked_top(tree: Node) -> Node:
    tree.refuse_unknown(known_top_keys(tree), "a bundle file")
    return tree


def known_top_keys(tree: Node) -> frozenset[str]:
    """The keys that a bundle file may have: those of the format, and the custom ones that people keep YAML anchors in."""
    if set(tree.entries("a bundle file")) <= TOP_KEYS:
        return TOP_KEYS
    blocks = re.split(r"^(?=[^\s#])", tree.file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return TOP_KEYS | {block.split(":", 1)[0].strip("'\" ") for block in blocks if re.search(r"[:\-]\s+&\w", block)}


def included_files(tree: Node, root: Path) -> Iterator[Path]:
    """The files that `include` of a bundle file names, in order. Raises CONFIG_INVALID for one that does not exist."""
    include = tree.get("include")
    for entry in include.items("include") if include else []:
        pattern = entry.text
        hits = sorted(root.glob(pattern)) if pattern and not pattern.startswith("/") else []
        if not hits and not any(c in pattern for c in "*?["):
            raise entry.bad(f"the included file {pattern!r} does not exist", nearest=nearest_names(pattern, _names_beside(root / pattern)))
        yield from (hit for hit in hits if hit.suffix in (".yml", ".yaml", ".json") and hit.name not in BUNDLE_FILES)


def _names_beside(path: Path) -> list[str]:
    return [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []


def choose_target(tree: Node, choices: Mapping[str, Node], wanted: str | None) -> str | None:
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


def _with_target(tree: Node, target: Node) -> Node:
    over = {key: target.value[key] for key in ("bundle", "resources", "workspace") if target.get(key)}
    merged = merge(tree, replace(target, value=over))
    values = target.get("variables")
    return set_variables(merged, values.entries("variables") if values else {})


def set_variables(tree: Node, values: Mapping[str, Node]) -> Node:
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


def with_overrides_file(tree: Node, root: Path, target: str | None, cwd: Path) -> Node:
    """Apply `.databricks/bundle/<target>/variable-overrides.json`, the file for values of one user."""
    path = root / ".databricks" / "bundle" / (target or "default") / "variable-overrides.json"
    if not path.is_file():
        return tree
    values = read_yaml(path, shown=shown_path(path, cwd)).entries("variable overrides")
    plain = {k: replace(v, text=v.text if isinstance(v.value, str) else json.dumps(v.value, default=str)) for k, v in values.items()}
    return set_variables(tree, plain)
