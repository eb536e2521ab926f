"""Replacing attributes of other packages' classes and modules for a while, in any number of sets, and putting them back.

Nothing else in Lakelet assigns to an attribute of pyspark, Delta or py4j. The sets are listed in `lakelet.spark.patches.all_patches`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Make = Callable[[Any, Any], Any]
"""(the attribute as it is, the context of the set) → its replacement."""

_ABSENT = object()  # the attribute is not there, or is inherited
_lock = threading.RLock()
_sets: list[PatchSet] = []  # those that are on, in the order in which they were put on
_originals: dict[tuple[int, str], tuple[Any, Any]] = {}  # (owner, value in the owner's own namespace) before the first set


@dataclass(frozen=True)
class Patch:
    """One attribute that is replaced.

    Attributes:
        owner: import path of the class or module that has the attribute.
        name: the attribute.
        make: makes the replacement of a function from the function itself, under a class method or static method too.
        why: what the replacement is for.
        since: the first version of the owner's package that has the attribute.
        optional: the attribute may be absent.
    """

    owner: str
    name: str
    make: Make
    why: str
    since: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"

    def owned_by(self) -> Any:
        """Import the owner. Raises ImportError or AttributeError."""
        parts = self.owner.split(".")
        for size in range(len(parts), 0, -1):
            try:
                found: Any = importlib.import_module(".".join(parts[:size]))
            except ModuleNotFoundError:
                continue
            return functools.reduce(getattr, parts[size:], found)
        raise ImportError(f"no module of {self.owner} can be imported")


@dataclass(eq=False)
class PatchSet:
    """Patches that are on, with the context that their replacements got."""

    patches: Sequence[Patch]
    context: Any
    _done: list[Patch] = field(default_factory=list)

    @property
    def is_on(self) -> bool:
        """Whether the set has not been taken off yet."""
        return self in _sets

    def take_off(self) -> None:
        """Put the attributes back in the reverse order; other sets on the same attributes stay. Does nothing the second time."""
        with _lock:
            if self in _sets:
                _sets.remove(self)
            for patch in reversed(self._done):
                _rebuild(patch)
            self._done.clear()


def without_context(make: Callable[[Any], Any]) -> Make:
    """Return a `Make` for a replacement that needs nothing but the original."""
    return lambda original, _: make(original)


def put_on(patches: Sequence[Patch], context: Any = None) -> PatchSet:
    """Replace the attributes in their order; where one fails, those before it are put back.

    `context`: what the replacements need. Raises ImportError or AttributeError for an owner or attribute that is missing, ValueError for
    an attribute that the set replaces twice, and what a patch's `make` raises.
    """
    twice = [name for name, times in Counter(map(str, patches)).items() if times > 1]
    if twice:
        raise ValueError(f"a set replaces {', '.join(twice)} twice")
    made = PatchSet(tuple(patches), context)
    with _lock:
        _sets.append(made)
        try:
            for patch in made.patches:
                owner = patch.owned_by()
                before = _before(owner, patch)
                made._done.append(patch)
                setattr(owner, patch.name, _replacement(before, patch, context))
        except BaseException:  # also Ctrl-C: a set of patches is on as a whole or not at all
            made.take_off()
            raise
    return made


@contextmanager
def patched_with(patches: Sequence[Patch], context: Any = None) -> Iterator[None]:
    """Replace the attributes for the life of the block; sets that were put on inside it and are still on end with it.

    Raises like `put_on`.
    """
    made = put_on(patches, context)
    try:
        yield
    finally:
        with _lock:
            inner = _sets[_sets.index(made) :] if made.is_on else []
            for one in reversed(inner):
                one.take_off()


def clear(owner: Any, *names: str) -> None:
    """Set attributes that hold what their package has started to None, as they are before it starts anything.

    Raises AttributeError for an attribute that is not there.
    """
    for name in names:
        getattr(owner, name)
        setattr(owner, name, None)


def _before(owner: Any, patch: Patch) -> Any:
    """Return what the owner has now, as it is stored; remember it if no set has replaced it yet."""
    stored = vars(owner).get(patch.name, _ABSENT)
    found = inspect.getattr_static(owner, patch.name, _ABSENT) if stored is _ABSENT else stored
    if found is _ABSENT and not patch.optional:
        raise AttributeError(f"{patch.owner} has no attribute {patch.name}")
    _originals.setdefault((id(owner), patch.name), (owner, stored))
    return None if found is _ABSENT else found


def _replacement(before: Any, patch: Patch, context: Any) -> Any:
    if isinstance(before, classmethod | staticmethod):
        return type(before)(functools.wraps(before.__func__)(patch.make(before.__func__, context)))
    made = patch.make(before, context)
    return functools.wraps(before)(made) if inspect.isfunction(before) and callable(made) else made


def _rebuild(patch: Patch) -> None:
    """Put the original back, then what the sets that are still on make of it."""
    owner = patch.owned_by()
    _, original = _originals[id(owner), patch.name]
    if original is not _ABSENT:
        setattr(owner, patch.name, original)
    elif patch.name in vars(owner):
        delattr(owner, patch.name)
    left = [(one, other) for one in _sets for other in one._done if other.name == patch.name and other.owned_by() is owner]
    if not left:
        del _originals[id(owner), patch.name]
    for one, other in left:
        setattr(owner, patch.name, _replacement(_before(owner, other), other, one.context))


__all__ = ["Make", "Patch", "PatchSet", "clear", "patched_with", "put_on", "without_context"]
