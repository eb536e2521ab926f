"""YAML as a tree that remembers where each value was written: reading it, small steps on it, its references, and mistakes that are found.

Relative paths stay relative to the file they are written in, so every node carries its file. References are `${…}`, such as
`${var.catalog}`; what one means is said by who reads the bundle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, nearest_names

if TYPE_CHECKING:
    import yaml

Remark = tuple[str, Location]
"""What has no effect or was left out, and where it is written."""
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class ConfigNode:
    """One value of a bundle file.

    `value` is a dict of nodes by key, a list of nodes, or a scalar; `text` is the scalar as written (`1.10` stays `1.10`).
    """

    value: Any
    where: Location
    file: Path
    text: str = ""

    def get(self, *keys: str) -> ConfigNode | None:
        """The node below the keys; None when one is absent or null."""
        node: ConfigNode | None = self
        for key in keys:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return None if node is None or node.value is None else node

    def entries(self, what: str) -> Mapping[str, ConfigNode]:
        """The keys of a mapping; an absent value counts as empty. Raises CONFIG_INVALID for another kind of value."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.bad(f"{what} must be a mapping of keys to values")
        return self.value

    def items(self, what: str) -> list[ConfigNode]:
        """The elements of a list; raises CONFIG_INVALID for another kind of value."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.bad(f"{what} must be a list")
        return self.value

    def bad(self, what: str, **more: Any) -> LakeletError:
        """A CONFIG_INVALID error that points at this node."""
        return LakeletError("CONFIG_INVALID", what, where=self.where, **more)

    def refuse_unknown(self, known: frozenset[str], what: str) -> None:
        """Raise CONFIG_INVALID for the first key that is not in `known`."""
        for key, child in self.entries(what).items():
            if key not in known:
                raise child.bad(f"{what} has no key {key!r}", nearest=nearest_names(key, known))


def read_yaml(path: Path, *, shown: str) -> ConfigNode:
    """Read one YAML file; `shown` is its name in messages. Raises CONFIG_INVALID with the line of a syntax error or a repeated key."""
    import yaml  # here, because most commands read no bundle

    try:
        text = path.read_text(encoding="utf-8")
        try:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
            root = loader.get_single_node()
        except yaml.MarkedYAMLError:
            loader = yaml.SafeLoader(text)  # slower, with the better line and words
            root = loader.get_single_node()
        if root is None:
            return ConfigNode({}, Location(shown, 1), path)
        return _convert(loader, root, path, shown)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Location(shown, mark.line + 1 if mark else 1)
        raise LakeletError("CONFIG_INVALID", f"{shown} is not valid YAML", where=where, why=error.problem) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LakeletError("CONFIG_INVALID", f"{shown} cannot be read", where=Location(shown, 1), why=str(error)) from error


def _convert(loader: yaml.SafeLoader, node: Any, path: Path, shown: str) -> ConfigNode:
    where = Location(shown, node.start_mark.line + 1)
    if node.id == "mapping":
        _refuse_repeated_keys(node, shown)
        loader.flatten_mapping(node)
        children: dict[str, ConfigNode] = {}
        for key, value in node.value:
            child = _convert(loader, value, path, shown)
            children[str(key.value)] = replace(child, where=Location(shown, key.start_mark.line + 1))
        return ConfigNode(children, where, path)
    if node.id == "sequence":
        return ConfigNode([_convert(loader, item, path, shown) for item in node.value], where, path)
    value = loader.construct_object(node)
    return ConfigNode(value, where, path, text=str(node.value))


def _refuse_repeated_keys(node: yaml.MappingNode, shown: str) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.id != "scalar":
            todo = "Put text that begins with { or [ into quotes, such as '{{ name }}' of a template."
            raise LakeletError("CONFIG_INVALID", "a key is a mapping or a list here", where=Location(shown, line), todo=todo)
        if key.tag != _MERGE_TAG and key.value in seen:
            what = f"the key {key.value!r} is written twice, first in line {seen[key.value]}"
            raise LakeletError("CONFIG_INVALID", what, where=Location(shown, line))
        seen[str(key.value)] = line


def merge(base: ConfigNode, over: ConfigNode) -> ConfigNode:
    """Return `base` merged with `over` as the bundle format does it: mappings key by key, lists appended, anything else replaced."""
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        merged = dict(base.value)
        for key, child in over.value.items():
            merged[key] = merge(merged[key], child) if key in merged else child
        return replace(base, value=merged)
    if isinstance(base.value, list) and isinstance(over.value, list):
        return replace(base, value=[*base.value, *over.value])
    return base if over.value is None else over


def names_beside(path: Path) -> list[str]:
    """The names in the folder of a path, which may not be there: one of them is near to a misspelled one."""
    return [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []


def shown_path(path: Path, cwd: Path) -> str:
    """The path as a user in `cwd` would name it: relative when it lies below, else absolute."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def scalar(value: Any, like: ConfigNode) -> ConfigNode:
    """A single value that is written where another node is."""
    return replace(like, value=value, text=str(value).lower() if isinstance(value, bool) else str(value))


def mapping(value: Mapping[str, ConfigNode], like: ConfigNode) -> ConfigNode:
    """A mapping that is written where another node is."""
    return replace(like, value=dict(value), text="")


def children(node: ConfigNode | None) -> Mapping[str, ConfigNode]:
    """The entries of a mapping; nothing for any other value."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def elements(node: ConfigNode | None) -> list[ConfigNode]:
    """The items of a list; nothing for any other value."""
    return node.value if node is not None and isinstance(node.value, list) else []


def with_entries(node: ConfigNode, **entries: ConfigNode) -> ConfigNode:
    """The mapping with these entries instead of its own."""
    return replace(node, value={**children(node), **entries})


def without(node: ConfigNode, *keys: str) -> ConfigNode:
    """The mapping without these keys."""
    return replace(node, value={key: child for key, child in children(node).items() if key not in keys})


def changed(node: ConfigNode, keys: tuple[str, ...], change: Callable[[ConfigNode], ConfigNode]) -> ConfigNode:
    """The tree with the value below the keys changed; `*` stands for each item of a list. Unchanged where there is none."""
    if not keys:
        return node if node.value is None else change(node)
    first, *rest = keys
    if first == "*":
        return replace(node, value=[changed(item, tuple(rest), change) for item in node.value]) if isinstance(node.value, list) else node
    child = children(node).get(first)
    if child is None:
        return node
    after = changed(child, tuple(rest), change)
    return node if after is child else with_entries(node, **{first: after})


def found(node: ConfigNode, keys: tuple[str, ...]) -> Iterator[ConfigNode]:
    """The values below the keys; `*` stands for each item of a list."""
    if not keys:
        if node.value is not None:
            yield node
        return
    first, *rest = keys
    below = elements(node) if first == "*" else [child] if (child := children(node).get(first)) is not None else []
    for one in below:
        yield from found(one, tuple(rest))


def plain(node: ConfigNode) -> Any:
    """The tree as JSON values, without what is null. A date is the text that was written."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items() if child.value is not None}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value if item.value is not None]
    return node.value if isinstance(node.value, (str, bool, int, float)) else node.text


class Problems:
    """The errors found so far, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Location | None], LakeletError] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, error: LakeletError) -> None:
        """Keep an error, or each of several that come as one."""
        for one in error.errors if isinstance(error, DefinitionErrors) else (error,):
            self._found.setdefault((one.code, one.what, one.where), one)

    def bad(self, node: ConfigNode, what: str, *, code: str = "CONFIG_INVALID", nearest: Sequence[str] = (), **more: Any) -> None:
        """Keep an error that points at a node."""
        self.add(LakeletError(code, what, where=node.where, nearest=nearest, **more))

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the error that the body raises, and go on after the body."""
        try:
            yield
        except LakeletError as error:
            self.add(error)

    def error(self) -> DefinitionErrors:
        """All of them as one error, in the order of files and lines."""
        return DefinitionErrors(sorted(self._found.values(), key=lambda e: (e.where.file, e.where.line) if e.where else ("", 0)))

    def raise_all(self) -> None:
        """Raise DefinitionErrors if there is any."""
        if self._found:
            raise self.error()


class FirstProblem(Problems):
    """Raises the first error at once, for who needs the whole to be right."""

    def add(self, error: LakeletError) -> None:
        raise error


REFERENCE = re.compile(r"\$\{([A-Za-z][\w-]*(?:\.[\w-]+|\[\d+\])+)\}")
_STEP = re.compile(r"[^.\[\]]+")
_IN_WORKSPACE = re.compile(r"/Workspace/?(?=\$\{workspace\.(file|root|resource|state)_path\})")  # those paths begin with it by themselves
_MOST_NESTED = 50  # more references within one another are a circle

Within = tuple[str, ...]
"""The references whose values are being filled in, the outermost first."""


class References:
    """Fills in the references of one bundle.

    Args:
        meaning: the node that a reference stands for, whose own references are open; None: the reference stays as it is written. The second
            argument is the node with the reference.
        circular: is called with a node with a reference that leads to itself, the reference, and the way there. It stays as it is written.
    """

    def __init__(self, meaning: Callable[[str, ConfigNode], ConfigNode | None], circular: Callable[[ConfigNode, str, str], None]) -> None:
        self._meaning, self._circular = meaning, circular
        self._ready: dict[str, ConfigNode] = {}

    def filled(self, node: ConfigNode, within: Within = ()) -> ConfigNode:
        """The tree with each reference replaced by what it stands for. Where a reference is the whole text, the value keeps its type."""
        if isinstance(node.value, dict):
            return replace(node, value={key: self.filled(child, within) for key, child in node.value.items()})
        if isinstance(node.value, list):
            return replace(node, value=[self.filled(item, within) for item in node.value])
        if not isinstance(node.value, str) or "${" not in node.value:
            return node
        return self._filled_text(scalar(_IN_WORKSPACE.sub("", node.value), node), within)

    def _filled_text(self, node: ConfigNode, within: Within) -> ConfigNode:
        for _ in range(_MOST_NESTED):  # a reference may stand in the name of another one: ${var.${bundle.target}_catalog}
            text = node.value
            whole = REFERENCE.fullmatch(text)
            if whole:
                value = self._value(whole.group(1), node, within)
                if value is None:
                    return node
                single = not isinstance(value.value, (dict, list))
                return replace(value, where=node.where, file=node.file) if single else replace(value, where=node.where)
            after = REFERENCE.sub(lambda match, node=node: self._text(match, node, within), text)  # type: ignore[misc]
            if after == text:
                return node
            node = scalar(after, node)
        return node

    def _text(self, match: re.Match[str], node: ConfigNode, within: Within) -> str:
        value = self._value(match.group(1), node, within)
        if value is None:
            return match.group()
        return json.dumps(plain(value)) if isinstance(value.value, (dict, list)) else value.text

    def _value(self, path: str, node: ConfigNode, within: Within) -> ConfigNode | None:
        """The value of a reference, with its own references filled in."""
        if path in self._ready:
            return self._ready[path]
        if path in within:
            self._circular(node, path, " → ".join([*within[within.index(path) :], path]))
            return None
        found = self._meaning(path, node)
        if found is None:
            return None
        self._ready[path] = filled = self.filled(found, (*within, path))
        return filled


def steps(path: str) -> list[str]:
    """The parts of a reference: `var.tables[0].name` has four."""
    return _STEP.findall(path)


def below(node: ConfigNode | None, path: Sequence[str]) -> ConfigNode | None:
    """The value at a path of keys and indexes; None where there is none, or it is null."""
    for step in path:
        if node is None:
            return None
        items = elements(node)
        node = children(node).get(step) if not items else items[int(step)] if step.isdigit() and int(step) < len(items) else None
    return None if node is None or node.value is None else node


def field_of(resource: ConfigNode, kind: str, path: Sequence[str]) -> ConfigNode | None:
    """A field of a resource as a reference names it; None where it is not known before the resource is made.

    Known are the fields that are written, and the `volume_path` of a volume, which its names give.
    """
    if kind == "volumes" and list(path) == ["volume_path"]:
        names = [below(resource, [key]) for key in ("catalog_name", "schema_name", "name")]
        return None if None in names else scalar("/Volumes/" + "/".join(name.text for name in names if name), resource)
    return below(resource, path)


def full_name(resource: ConfigNode, kind: str) -> ConfigNode | None:
    """The `id` of a schema or volume: its full name. None for other kinds."""
    keys = {"schemas": ("catalog_name", "name"), "volumes": ("catalog_name", "schema_name", "name")}.get(kind, ())
    names = [below(resource, [key]) for key in keys]
    return None if None in names or not names else scalar(".".join(name.text for name in names if name), resource)
