"""Keeps the encoders of Delta's actions between processes.

Delta derives them from its Scala classes when an update first reads or writes a table, which takes Scala's reflection: 0.8 s, a tenth of
a first test. What is derived is the same each time, and Spark can serialise it. The warm-up process writes it into a file beside the
class-data archive, whose name stands for the jars. A session puts it where Delta keeps what it has derived, in another thread, when the
code of a pipeline is being loaded. What is not in the file, or comes too late, Delta derives as ever.
"""

from __future__ import annotations

import contextlib
import threading
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_ENCODERS = "org.apache.spark.sql.delta.implicits.package$"
_ENCODER = "org.apache.spark.sql.delta.util.DeltaEncoder"
_ACTIONS = "org.apache.spark.sql.delta.actions.Action$"
_INITIALISED = "bitmap$0"
"""Field of an object of Scala that has a bit for each of its lazy values."""
_KEPT = tuple(f"org$apache$spark$sql$delta$util$DeltaEncoders$$_{name}Encoder" for name in ("addFile", "singleAction"))
_SCHEMAS = ("logSchema", "addFileSchema")
_offered: list[tuple[SparkContext, Path]] = []


def keep_encoders(context: SparkContext, file: Path) -> None:
    """Write the encoders into a file. Call it before Delta has been used: which bit belongs to a value is found by watching it being set.

    Writes nothing with a Delta that has none of these names.
    """
    from lakelet.jvm.errors import Py4JError

    jvm: Any = context._jvm
    with contextlib.suppress(Py4JError, TypeError):
        kept = jvm.java.util.HashMap()
        for owner, names in ((_ENCODERS, _KEPT), (_ACTIONS, _SCHEMAS)):
            instance, bits = _instance(jvm, owner), _field(jvm, owner, _INITIALISED)
            for name in names:
                before = int(bits.get(None))
                value = getattr(instance, name)()
                kept.put(name, value.get().encoder() if owner == _ENCODERS else value)
                kept.put(name + _INITIALISED, int(bits.get(None)) & ~before)
        content = jvm.java.io.ByteArrayOutputStream()
        stream = jvm.java.io.ObjectOutputStream(content)
        stream.writeObject(kept)
        stream.close()
        file.write_bytes(content.toByteArray())


def offer_encoders(context: SparkContext, file: Path) -> None:
    """Have `give_offered` give Delta the encoders of a file, if there is one."""
    _offered[:] = [(context, file)] if file.is_file() else []


def give_offered() -> None:
    """Give Delta what was offered and not yet given, in another thread; return at once.

    The thread also starts Scala's reflection, which Spark needs for a list of files (0.3 s): it finds the names of their fields with it.
    """
    while _offered:
        threading.Thread(target=_give, args=_offered.pop(), name="lakelet-encoders", daemon=True).start()


def _give(context: SparkContext, file: Path) -> None:
    from lakelet.jvm.errors import Py4JError

    jvm: Any = context._jvm
    with contextlib.suppress(Py4JError, OSError):
        if give_encoders(context, file):
            _instance(jvm, "scala.reflect.runtime.package$").universe()


def give_encoders(context: SparkContext, file: Path) -> bool:
    """Give Delta the encoders of a file of `keep_encoders`; return whether it has them now. Nothing changes where something is missing."""
    from lakelet.jvm.errors import Py4JError

    jvm: Any = context._jvm
    try:
        stream = jvm.java.io.ObjectInputStream(jvm.java.io.FileInputStream(str(file)))
        kept = stream.readObject()
        stream.close()
        made = getattr(getattr(jvm.org.apache.spark.sql.catalyst.encoders, "ExpressionEncoder$"), "MODULE$")
        derived, has_derived = _field(jvm, _ENCODER, "_encoder"), _field(jvm, _ENCODER, _INITIALISED)
        values = {name: kept[name] for name in _SCHEMAS}
        for name in _KEPT:
            values[name] = jvm.org.apache.spark.sql.delta.util.DeltaEncoder(None)
            derived.set(values[name], made.apply(kept[name]))
            has_derived.setBoolean(values[name], True)
        owners = {owner: _field(jvm, owner, _INITIALISED) for owner in (_ENCODERS, _ACTIONS)}
        fields = {name: _field(jvm, _ENCODERS if name in _KEPT else _ACTIONS, name) for name in values}
        given = {name: kept[name + _INITIALISED] for name in values}
        for owner in owners:
            _instance(jvm, owner)  # initialised first
        for name, field in fields.items():
            field.set(None, values[name])
        for (owner, bits), names in zip(owners.items(), (_KEPT, _SCHEMAS), strict=True):
            # A bit that Delta sets between these two calls is lost, and its value derived once more.
            every = reduce(or_, (given[name] for name in names), int(bits.get(None)))
            (bits.setByte if owner == _ACTIONS else bits.setInt)(None, every)
    except (Py4JError, TypeError, KeyError):
        return False
    return True


def _instance(jvm: Any, owner: str) -> Any:
    package, name = owner.rsplit(".", 1)
    return getattr(getattr(getattr(jvm, package), name), "MODULE$")


def _field(jvm: Any, owner: str, name: str) -> Any:
    field = jvm.java.lang.Class.forName(owner).getDeclaredField(name)
    field.setAccessible(True)
    return field


__all__ = ["give_encoders", "give_offered", "keep_encoders", "offer_encoders"]
