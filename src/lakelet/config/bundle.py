"""What a bundle means for a local run: its pipelines, its variables and other references `${…}`, with one deployment target chosen.

Only what a local run needs is interpreted; a deployment gives the same files their meaning in `lakelet.deploy.bundle`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config import bundle_python
from lakelet.config.bundle_files import TARGET_KEYS, VARIABLE_KEYS, read_bundle_files, synced_paths, variables_of
from lakelet.config.yaml_tree import (
    REFERENCE,
    ConfigNode,
    FirstProblem,
    References,
    Remark,
    Within,
    below,
    children,
    field_of,
    full_name,
    scalar,
    steps,
)

_MODES = ("development", "production")
_OPEN = re.compile(r"\$\{([A-Za-z][\w.\-\[\]]*)\}")


@dataclass(frozen=True)
class Bundle:
    """A bundle with one deployment target chosen: `tree` is everything merged, `target` None when the bundle has no targets.

    `settings`: what the target says of itself, such as its `mode`. `remarks`: warnings of the bundle's Python. `without_python`: why
    that was not run, where `tree` is what the files alone declare.
    """

    root: Path
    tree: ConfigNode
    target: str | None
    environ: Mapping[str, str]
    settings: ConfigNode | None = None
    remarks: tuple[Remark, ...] = ()
    without_python: LakeletError | None = None

    def pipelines(self) -> Mapping[str, ConfigNode]:
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

    def development(self, pipeline: ConfigNode) -> bool | None:
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

    def switch(self, node: ConfigNode) -> bool:
        """Return a boolean value, resolving variables. Raises CONFIG_INVALID for any other value."""
        text = str(node.value).lower() if isinstance(node.value, bool) else self.text(node).strip().lower()
        if text not in ("true", "false"):
            raise node.bad(f"true or false is expected here, got {text!r}")
        return text == "true"

    def text(self, node: ConfigNode) -> str:
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

    def partly(self, node: ConfigNode) -> str:
        """Like `text`, but references that mean nothing locally (`${resources.…}`, `${secrets…}`) stay as they are written."""
        return self.filled(scalar(node.text, node)).text

    def filled(self, node: ConfigNode) -> ConfigNode:
        """A single value with its references filled in, like `partly`; a reference that stands alone keeps the type of what it means."""
        found = self._references.filled(node)
        if isinstance(found.value, (dict, list)):
            raise node.bad(f"{node.text} is not a single value")
        return found

    @cached_property
    def _references(self) -> References:
        return References(self._meaning, _refuse_circle)

    def _with_complex(self, node: ConfigNode, within: Within = ()) -> ConfigNode:
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

    def _meaning(self, path: str, node: ConfigNode) -> ConfigNode | None:
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

    def _of_resource(self, kind: str, key: str, *path: str) -> ConfigNode | None:
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

    def _variable(self, rest: list[str], node: ConfigNode) -> ConfigNode:
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


def _refuse_circle(node: ConfigNode, path: str, circle: str) -> NoReturn:
    raise node.bad(f"${{{path}}} refers to itself", why=circle)


_BUILT_IN = frozenset(
    (
        *("bundle.target", "bundle.environment", "workspace.file_path", "workspace.root_path"),
        *(f"workspace.current_user.{name}" for name in ("userName", "short_name", "domain_friendly_name", "id", "displayName")),
    )
)
_WHOLE_NAME = ("userName", "displayName")


def load_bundle(file: Path, *, target: str | None, cwd: Path, environ: Mapping[str, str]) -> Bundle:
    """Read a bundle for a local run, for a deployment target, None for the default one.

    Resources that the bundle makes by Python are among those of the tree; where the package that runs it is missing, they are left out.
    Raises CONFIG_INVALID with file and line for whatever does not fit the format, BUNDLE_PYTHON_FAILED where the bundle's Python fails.
    """
    files = read_bundle_files(file, target, cwd=cwd, problems=FirstProblem())
    if files.settings is not None:
        files.settings.refuse_unknown(TARGET_KEYS, f"the target {files.target!r}")
    for name, variable in (files.tree.get("variables") or replace(files.tree, value={})).entries("variables").items():
        variable.refuse_unknown(VARIABLE_KEYS, f"the variable {name!r}")
    missing = None
    if files.tree.get("python") or files.tree.get("experimental"):
        try:
            files = files.with_python(variables_of(environ))
        except LakeletError as error:
            if error.code != bundle_python.MISSING:
                raise
            missing = error
    return Bundle(files.root, files.tree, files.target, environ, files.settings, files.remarks, missing)
