"""Facts that an idle update depends on, compared without Spark.

A fact is the short signature of one thing; `Here` takes the signatures on this machine, `unchanged` compares them. Neither Spark nor Delta
nor pyarrow is imported.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lakelet.base.errors import LakeletError
from lakelet.base.terminals import VOLATILE
from lakelet.base.text import TextEnum
from lakelet.config.update_config import PipelineConfig
from lakelet.files import signatures
from lakelet.spark.launch.environment import java_executable
from lakelet.storage.root import Storage

_STATE_STORES = ("state",)
"""Folders of checkpoints with the state of Spark's operators: they change only together with the offsets."""
_BYTE_CODE = ("__pycache__",)
"""What Python writes beside modules when it imports them the first time; the modules are compared."""


UNKNOWN = (OSError, ValueError, LookupError, RecursionError)
"""Raised where a signature cannot be taken: the working folder is gone, the user has no name, folders are nested too deep."""


class FactKind(TextEnum):
    """Kinds of things, in the order in which they are compared: cheap ones first."""

    CONFIGURATION = "the configuration"
    PROCESS = "the process"
    VARIABLES = "the names of the environment's variables"
    VARIABLE = "the environment variable"
    REGISTRY = "the registry"
    FILE = "the file"
    NAMES = "the names in"
    ENTRIES = "the files in"
    LOG = "the table"
    STATE = "the state of the flows in"
    TREE = "the files below"


@dataclass(frozen=True)
class Fact:
    """One thing and its signature (`value`)."""

    kind: FactKind
    name: str
    value: str


@dataclass(frozen=True)
class Reason:
    """The first thing that changed, for which an update starts Spark."""

    kind: FactKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip() + " changed"


class World(Protocol):
    """Source of signatures."""

    def value(self, kind: FactKind, name: str) -> str:
        """Return the current signature of a thing."""

    def names(self, kind: FactKind) -> Iterable[str]:
        """Return the names of all things of a kind that is compared as a whole: environment variables."""


@dataclass(frozen=True)
class Here:
    """This process and machine, for one configuration.

    Args:
        config: the configuration as it was read now.
        key: key of the digests, so that a value has different digests in different records.
        environ: the environment of the process at its start.
    """

    config: PipelineConfig
    key: bytes
    environ: Mapping[str, str]
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """Seconds that listing each tree of files took, by its path."""

    def value(self, kind: FactKind, name: str) -> str:
        return _VALUES[kind](self, name)

    def names(self, kind: FactKind) -> Iterator[str]:
        return (name for name in sorted(self.environ) if kind is FactKind.VARIABLE and name not in VOLATILE)

    @property
    def storage(self) -> Path:
        assert isinstance(self.config.storage, Path)
        return self.config.storage

    def _variable(self, name: str) -> str:
        return signatures.digest(self.environ[name], self.key) if name in self.environ else signatures.ABSENT

    def _tree(self, name: str) -> str:
        started = time.perf_counter()
        try:
            return signatures.of_tree(name, without=_BYTE_CODE)
        finally:
            self.seconds[name] = time.perf_counter() - started

    def _registry(self, _: str) -> str:
        """Return the digest of the registry without its last update, or "not clean" if that one did not complete."""
        try:
            found = json.loads(Storage(self.storage).registry_file.read_text())
            last = found.pop("last_update")
            return signatures.digest(json.dumps(found, sort_keys=True)) if last and last["clean"] else "not clean"
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return signatures.ABSENT

    def _state(self, name: str) -> str:
        return signatures.of_tree(os.path.join(self.storage, name), without=_STATE_STORES)


def _process(what: str) -> str:
    return signatures.digest(_PROCESS[what]())


def _java() -> str:
    """Return the file of the Java that Spark would start. Links are followed: there may be another version behind the same name."""
    try:
        return os.path.realpath(java_executable())
    except LakeletError:
        return signatures.ABSENT


_PROCESS: Mapping[str, Callable[[], object]] = {
    "interpreter": lambda: (sys.version, sys.executable, sys.prefix, sys.flags),
    "search path": lambda: sys.path,
    "folder": os.getcwd,
    "Java": _java,
    "user": lambda: (os.getuid() if hasattr(os, "getuid") else None, getpass.getuser()),
}

_VALUES: Mapping[FactKind, Callable[[Here, str], str]] = {
    FactKind.CONFIGURATION: lambda here, _: signatures.digest(here.config, here.key),
    FactKind.PROCESS: lambda here, name: _process(name),
    FactKind.VARIABLES: lambda here, _: signatures.digest(list(here.names(FactKind.VARIABLE)), here.key),
    FactKind.VARIABLE: Here._variable,
    FactKind.REGISTRY: Here._registry,
    FactKind.FILE: lambda here, name: signatures.of_file(name),
    FactKind.NAMES: lambda here, name: signatures.of_names(name),
    FactKind.ENTRIES: lambda here, name: signatures.of_entries(name),
    FactKind.LOG: lambda here, name: signatures.of_log(name),
    FactKind.STATE: Here._state,
    FactKind.TREE: Here._tree,
}


def looked_up(world: World, things: Iterable[tuple[FactKind, str]]) -> tuple[Fact, ...]:
    """Return the current facts about some things, each once, in the order of the kinds."""
    order = list(FactKind)
    return tuple(Fact(kind, name, world.value(kind, name)) for kind, name in sorted(set(things), key=lambda t: (order.index(t[0]), t[1])))


def of_process(world: World) -> tuple[Fact, ...]:
    """Return the facts that are fixed when a process starts: configuration, interpreter, folder, user, and environment."""
    variables = [(FactKind.VARIABLE, name) for name in world.names(FactKind.VARIABLE)]
    return looked_up(
        world, [(FactKind.CONFIGURATION, ""), *((FactKind.PROCESS, name) for name in _PROCESS), (FactKind.VARIABLES, ""), *variables]
    )


def unchanged(facts: Iterable[Fact], world: World) -> Reason | None:
    """Return the first thing that changed, or None. A thing whose signature cannot be taken counts as changed."""
    for fact in facts:
        try:
            found = world.value(fact.kind, fact.name)
        except UNKNOWN:
            found = None
        if found != fact.value:
            return Reason(fact.kind, fact.name)
    return None


__all__ = ["UNKNOWN", "Fact", "FactKind", "Here", "Reason", "World", "looked_up", "of_process", "unchanged"]
