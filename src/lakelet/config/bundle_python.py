"""Resources that a bundle makes by Python (`python.resources`) and Python that changes resources (`python.mutators`).

Both run as the Databricks CLI runs them: `python -m databricks.bundles.build` of the package databricks-bundles, in the bundle's folder,
once for each of the two phases. A phase gets the bundle as JSON and writes it again with its resources. The package is the user's own:
Lakelet does not install it. [Decision 57](../../../docs/decisions/0057-python-of-bundles.md).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.config.yaml_tree import ConfigNode, References, Remark, below, children, scalar, shown_path, steps

LOAD, CHANGE = "load_resources", "apply_mutators"

MISSING, FAILED = "BUNDLE_PYTHON_MISSING", "BUNDLE_PYTHON_FAILED"
_PACKAGE = "databricks-bundles"
_RESTRICTED = "DATABRICKS_BUNDLE_RESTRICTED_CODE_EXECUTION"
_PATHS = {
    *(("root_path",), ("notebook_path",), ("python_file",), ("file_path",)),
    *(("file", "path"), ("notebook", "path"), ("glob", "include")),
}
"""Keys of resources whose values are paths, alone or behind another key."""
_EMPTY: tuple[Any, ...] = (None, "", {}, [])


@dataclass(frozen=True)
class PythonSection:
    """What a bundle says of its Python.

    Attributes:
        node: the section, `python` or the older `experimental.python`.
        resources: functions that make resources, as `module:function`.
        mutators: functions that change resources.
        venv: where the virtual environment with the package is; None where the bundle does not say.
    """

    node: ConfigNode
    resources: tuple[str, ...]
    mutators: tuple[str, ...]
    venv: ConfigNode | None


def python_section(tree: ConfigNode) -> PythonSection | None:
    """Return the section of a bundle, None where it names no function.

    Raises CONFIG_INVALID for a section of another form, for both sections, and for `experimental.pydabs`, which the package has given up.
    """
    sections = [node for node in (tree.get("python"), tree.get("experimental", "python")) if node is not None]
    pydabs = tree.get("experimental", "pydabs")
    if pydabs is not None and (enabled := pydabs.get("enabled")) is not None and enabled.value is True:
        raise pydabs.bad("experimental.pydabs is read no more", todo="Write python: with resources: and mutators: in its place.")
    if not sections:
        return None
    if len(sections) > 1 and _plain(sections[0]) != _plain(sections[1]):
        raise sections[1].bad("the bundle has python and experimental.python", todo="Keep python.")
    node = sections[0]
    venv = node.get("venv_path")
    if venv is not None and isinstance(venv.value, (dict, list)):
        raise venv.bad("python.venv_path is a single path")
    node.refuse_unknown(frozenset({"resources", "mutators", "venv_path"}), "python")
    found = PythonSection(node, _functions(node, "resources"), _functions(node, "mutators"), venv)
    return found if found.resources or found.mutators else None


def _functions(section: ConfigNode, key: str) -> tuple[str, ...]:
    listed = section.get(key)
    entries = listed.items(f"python.{key}") if listed else []
    for entry in entries:
        if not re.fullmatch(r"[\w.]+:\w+", entry.text):
            raise entry.bad(f"{entry.text!r} names no function", todo="Write module:function, as in resources:load_resources.")
    return tuple(entry.text for entry in entries)


def with_python(
    section: PythonSection, tree: ConfigNode, root: Path, target: str | None, *, given: Mapping[str, str], cwd: Path
) -> tuple[ConfigNode, tuple[Remark, ...]]:
    """Return the bundle with what its Python makes and changes, and the warnings of that Python.

    Args:
        tree: everything merged for the target, references as they are written.
        given: values of variables that go before those of the files.
        cwd: files in messages are named relative to it.

    A resource made by Python stands where Python made it, and its relative paths are relative to the bundle's folder. What a mutator
    leaves as it is keeps its place and its references. Raises BUNDLE_PYTHON_MISSING where there is no interpreter with the package,
    BUNDLE_PYTHON_FAILED where the code fails, CONFIG_INVALID for a resource that a file declares too.
    """
    if os.environ.get(_RESTRICTED):
        raise _missing(
            section, "the bundle's Python may not run", why=f"{_RESTRICTED} is set.", todo="Unset it, to run code of the bundle."
        )
    values = _references(tree, root, target, given)
    run = _Run(section, _interpreter(section, values, root), root, cwd)
    if section.resources:
        written = run.phase(LOAD, _document(tree, values, run, target))
        tree = _with_resources(tree, written, run)
    if section.mutators:
        before = _document(tree, values, run, target)
        tree = _with_changes(tree, before, run.phase(CHANGE, before), run)
    return tree, tuple(run.warnings)


def _missing(section: PythonSection, what: str, **more: Any) -> LakeletError:
    return LakeletError(MISSING, what, where=section.node.where, **more)


def _interpreter(section: PythonSection, values: References, root: Path) -> str:
    """The interpreter of `venv_path`; without one, or where it does not exist, Lakelet's own if it has the package."""
    named = values.filled(section.venv).text if section.venv else ""
    inside = Path(os.path.normpath(root / named)) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if section.venv and inside.exists():
        return str(inside)
    own = _own_interpreter()
    if own is not None:
        return own
    if section.venv is None:
        raise _missing(section, f"{_PACKAGE} is not installed, which runs the bundle's Python", todo=f"Type: pip install {_PACKAGE}")
    todo = f"Make it: python3 -m venv {shlex.quote(named)} && {shlex.quote(named)}/bin/pip install {_PACKAGE}"
    what = f"the virtual environment {named!r} of the bundle's Python does not exist"
    raise LakeletError(MISSING, what, where=section.venv.where, todo=todo)


def _own_interpreter() -> str | None:
    try:
        return sys.executable if find_spec("databricks.bundles.build") else None
    except ModuleNotFoundError:
        return None


# --- what the code gets ----------------------------------------------------------------------------------------------------------------


def _document(tree: ConfigNode, values: References, run: _Run, target: str | None) -> dict[str, Any]:
    """The bundle as the package reads it.

    References to variables and to the bundle's own values are filled in, and paths are relative to the bundle's folder, as the CLI does it
    before it runs the code. Raises CONFIG_INVALID for resources of another form.
    """
    bundle, workspace, kinds, variables = (tree.get(key) for key in ("bundle", "workspace", "resources", "variables"))
    groups = {kind: group.entries(f"resources.{kind}") for kind, group in kinds.entries("resources").items()} if kinds else {}
    return {
        "bundle": {**(_plain(bundle) if bundle else {}), "target": target or "default"},
        "workspace": _plain(values.filled(workspace)) if workspace else {},
        "python": {"resources": list(run.section.resources), "mutators": list(run.section.mutators)},
        "variables": {name: {"value": _value_of(name, node, values)} for name, node in children(variables).items()},
        "resources": {
            kind: {name: _plain(values.filled(_from_root(one, run.root))) or {} for name, one in group.items()}
            for kind, group in groups.items()
        },
    }


def _value_of(name: str, definition: ConfigNode, values: References) -> Any:
    """The value of a variable; None where it has none."""
    text = f"${{var.{name}}}"
    found = values.filled(scalar(text, definition))
    return None if found.value == text else _plain(found)


def _from_root(node: ConfigNode, root: Path, keys: tuple[str, ...] = ()) -> ConfigNode:
    """The tree with relative paths that begin at `root`."""
    if isinstance(node.value, dict):
        return replace(node, value={key: _from_root(child, root, (*keys, key)) for key, child in node.value.items()})
    if isinstance(node.value, list):
        return replace(node, value=[_from_root(item, root, keys) for item in node.value])
    is_path = keys[-1:] in _PATHS or keys[-2:] in _PATHS
    if is_path and node.file.parent != root and _is_relative(node):
        return scalar(os.path.relpath(node.file.parent / node.text, root), node)
    return node


def _plain(node: ConfigNode) -> Any:
    """The tree as JSON values."""
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(item) for item in node.value]
    return node.value if node.value is None or isinstance(node.value, (str, bool, int, float)) else node.text


def _is_relative(node: ConfigNode) -> bool:
    return isinstance(node.value, str) and not re.match(r"[/$~]|\w+:", node.text)


def _references(tree: ConfigNode, root: Path, target: str | None, given: Mapping[str, str]) -> References:
    """What references mean before the bundle's Python runs: variables and the bundle's name and target. Others stay as they are."""
    name = tree.get("bundle", "name")
    of_bundle = {"name": name.text if name else root.name, "target": target, "environment": target}

    def meaning(path: str, node: ConfigNode) -> ConfigNode | None:
        head, first, *rest = steps(path)
        if head == "bundle":
            text = None if rest else of_bundle.get(first)
            return scalar(text, node) if text else None
        if head != "var":
            return None
        if first in given:
            return scalar(given[first], node)
        definition = tree.get("variables", first)
        return below(definition and (definition.get("value") or definition.get("default")), rest)

    return References(meaning, lambda *_: None)


# --- one phase -------------------------------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """The processes of one bundle: what the package wrote, as values, places and warnings."""

    section: PythonSection
    interpreter: str
    root: Path
    cwd: Path
    warnings: list[Remark] = field(default_factory=list)
    places: dict[str, Location] = field(default_factory=dict)

    def phase(self, name: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run one phase; returns the resources that it wrote, by kind and name."""
        with tempfile.TemporaryDirectory(prefix="lakelet-bundle-") as folder:
            files = {key: Path(folder) / f"{key}.json" for key in ("input", "output", "diagnostics", "locations")}
            files["input"].write_text(json.dumps(document), encoding="utf-8")
            line = [self.interpreter, "-m", "databricks.bundles.build", "--phase", name]
            done = self._process([*line, *(word for key, file in files.items() for word in (f"--{key}", str(file)))])
            self._judge(_lines(files["diagnostics"]))
            if done.returncode:
                raise self._died(done.returncode, done.stderr)
            self.places = {str(one["path"]): self._place(one) for one in _lines(files["locations"])}
            if not files["output"].exists():
                raise self._failed("the bundle's Python ended without a result", done.stderr)
            found = json.loads(files["output"].read_text(encoding="utf-8")).get("resources") or {}
            return {kind: group for kind, group in found.items() if isinstance(group, dict)}

    def _process(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        texts: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
        try:
            return subprocess.run(command, cwd=self.root, env=environ, stdin=subprocess.DEVNULL, **texts)
        except OSError as problem:
            what = f"{self.interpreter}, which runs the bundle's Python, cannot be started"
            raise _missing(self.section, what, why=str(problem), todo="Make the virtual environment again.") from problem

    def _judge(self, diagnostics: Iterable[Mapping[str, Any]]) -> None:
        for one in diagnostics:
            what = _first_line(str(one.get("summary") or "the bundle's Python reports a problem"))
            if one.get("severity") == "error":
                raise self._failed(what, str(one.get("detail") or ""), one.get("location"))
            self.warnings.append((what, self._place(one.get("location"))))

    def _failed(self, what: str, detail: str, location: Any = None) -> LakeletError:
        """The error at the last line of the bundle's own code that a traceback names, with what it ends with."""
        frames = [(Path(file), int(line)) for file, line in re.findall(r'^ *File "(.+)", line (\d+)', detail, re.MULTILINE)]
        own = [one for one in frames if one[0].is_relative_to(self.root) and "site-packages" not in one[0].parts]
        where = Location(shown_path(own[-1][0], self.cwd), own[-1][1]) if own else self._place(location)
        return LakeletError(FAILED, what, where=where, why=_cause(detail))

    def _died(self, code: int, stderr: str) -> LakeletError:
        if re.search(r"No module named '?databricks", stderr):
            what = f"{_PACKAGE} is not installed for {self.interpreter}, which runs the bundle's Python"
            return _missing(self.section, what, todo=f"Type: {self.interpreter} -m pip install {_PACKAGE}")
        return self._failed(f"the bundle's Python ended with {code}", stderr)

    def _place(self, found: Any) -> Location:
        if not isinstance(found, dict) or not found.get("file"):
            return self.section.node.where
        file = Path(os.path.normpath(self.root / str(found["file"])))
        return Location(shown_path(file, self.cwd), int(found.get("line") or 0), found.get("column"))

    def like(self, kind: str, name: str) -> ConfigNode:
        """A node that stands where a resource was made or changed; its relative paths begin in the bundle's folder."""
        where = self.places.get(f"resources.{kind}.{name}", self.section.node.where)
        return ConfigNode(None, replace(where, column=None), self.root / self.section.node.file.name)


def _lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one on a line; none where the file is missing."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()] if file.exists() else []


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _cause(text: str) -> str | None:
    """What a traceback ends with: the last line that is not indented."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip() and not line.startswith((" ", "\t"))), None)


# --- what the code gives ---------------------------------------------------------------------------------------------------------------


def _with_resources(tree: ConfigNode, written: Mapping[str, Any], run: _Run) -> ConfigNode:
    """The tree with the resources of Python beside those of the files."""
    for kind, group in written.items():
        for name, body in group.items():
            like = run.like(kind, name)
            declared = tree.get("resources", kind, name)
            if declared is None:
                tree = _with(tree, like, "resources", kind, name, node=_made(body, like))
            elif f"resources.{kind}.{name}" in run.places:
                what = f"the resource {kind}.{name} is declared twice, first in {declared.where}"
                raise LakeletError("CONFIG_INVALID", what, where=like.where, todo="Rename one of them.")
    return tree


def _with_changes(tree: ConfigNode, before: Mapping[str, Any], written: Mapping[str, Any], run: _Run) -> ConfigNode:
    """The tree with what the mutators changed."""
    for kind, group in written.items():
        for name, body in group.items():
            declared = tree.get("resources", kind, name)
            if declared is not None and name in before["resources"].get(kind, ()):
                node = _changed(declared, before["resources"][kind][name], body, run.like(kind, name))
                tree = _with(tree, declared, "resources", kind, name, node=node)
    return tree


def _with(tree: ConfigNode, like: ConfigNode, *keys: str, node: ConfigNode) -> ConfigNode:
    if not keys:
        return node
    first, *rest = keys
    children = tree.value if isinstance(tree.value, dict) else {}
    below = children.get(first)
    return replace(tree, value={**children, first: _with(below or replace(like, value={}), like, *rest, node=node)})


def _made(value: Any, like: ConfigNode) -> ConfigNode:
    if isinstance(value, dict):
        return replace(like, value={key: _made(one, like) for key, one in value.items()})
    if isinstance(value, list):
        return replace(like, value=[_made(one, like) for one in value])
    return replace(like, value=value, text="" if value is None else _scalar_text(value))


def _changed(old: ConfigNode, before: Any, after: Any, like: ConfigNode) -> ConfigNode:
    """`old` with what differs between `before`, its value when the code got it, and `after`; the rest keeps its place and references."""
    if _same(before, after):
        return old
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(old.value, dict):
        kept = {key: child for key, child in old.value.items() if key in after or before.get(key) in _EMPTY}
        new = {key: _changed(kept[key], before.get(key), one, like) if key in kept else _made(one, like) for key, one in after.items()}
        return replace(old, value={**kept, **new})
    if isinstance(before, list) and isinstance(after, list) and isinstance(old.value, list):
        return replace(old, value=_changed_items(old.value, before, after, like))
    return _made(after, like)


def _changed_items(old: Sequence[ConfigNode], before: Sequence[Any], after: Sequence[Any], like: ConfigNode) -> list[ConfigNode]:
    """Items that are there unchanged keep their place wherever they stand now; another one is compared with what stood in its position."""
    left = dict(enumerate(before))
    same: dict[int, int] = {}
    for at, item in enumerate(after):
        match = next((i for i, one in left.items() if _same(one, item)), None)
        if match is not None:
            same[at] = match
            del left[match]
    items = []
    for at, item in enumerate(after):
        position = same.get(at, at)
        known = at in same or at in left
        items.append(_changed(old[position], before[position], item, like) if known else _made(item, like))
    return items


def _same(before: Any, after: Any) -> bool:
    """Whether two values mean the same to the package, which leaves out what is empty and may write a number as a text."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {*before, *after}
        return all(_same(before.get(key), after.get(key)) for key in keys)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return all(map(_same, before, after))
    if before in _EMPTY or after in _EMPTY:
        return before in _EMPTY and after in _EMPTY
    return _scalar_text(before) == _scalar_text(after)


def _scalar_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
