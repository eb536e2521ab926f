"""Facts about an exception of user code: the line and column that raised it, names close to a misspelled one, the remedy of an import."""

from __future__ import annotations

import builtins
import inspect
import linecache
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from types import FrameType

from lakelet.base.errors import Location, nearest_names
from lakelet.base.user_code import cell_filename, code_location, is_library

_UNEXPECTED = re.compile(r"(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_DEFINES = re.compile(r"\s*(?:async\s+)?(?:def|class)\b")
_FROM_MODULE = re.compile(r"cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<module>[\w.]+)'")


def innermost_location(error: BaseException, *, name: str | None = None, outside: str | None = None) -> Location | None:
    """Return the deepest line of the traceback in user code, with its text; None where there is none. `outside`: a file to leave out.

    The column is that of `name` (default: the name that the error is about) in the expression that raised, else where the expression
    begins. Python 3.10 does not know it.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != outside and not is_library(f.filename)]
    if not frames:
        return None
    last = frames[-1]
    line = last.lineno or 1
    where = code_location(last.filename, line)
    text = linecache.getline(last.filename, line).rstrip("\r\n")
    if not text.strip():
        return where
    begin, end = getattr(last, "colno", None), getattr(last, "end_colno", None)
    if begin is None:
        return replace(where, source=text)
    first, after = _characters(text, begin), _characters(text, end) if end and getattr(last, "end_lineno", None) == line else len(text)
    at = _position(text, first, after, name or _name_of(error))
    return replace(where, column=(first if at is None else at) + 1, source=text)


def pointed(where: Location, name: str | None = None) -> Location:
    """Return a line of user code with its text, and with the column where `name` first occurs in it."""
    text = linecache.getline(cell_filename(os.path.abspath(where.file), where.cell), where.line).rstrip("\r\n")
    if where.source or not text.strip():
        return where
    at = _position(text, 0, len(text), name)
    return replace(where, source=text) if at is None else replace(where, column=at + 1, source=text)


def line_of_text(where: Location, text: str) -> Location:
    """Return the line that has `text` as a string literal, a key of a dictionary for example; `where` if that is uncertain.

    It is in the call that begins at `where` and ends before the next function or class, or elsewhere in the file, but once.
    """
    every = linecache.getlines(cell_filename(os.path.abspath(where.file), where.cell))
    found = [number for number, line in enumerate(every, start=1) if f'"{text}"' in line or f"'{text}'" in line]
    call = takewhile(lambda pair: not _DEFINES.match(pair[1]), enumerate(every[max(where.line - 1, 0) :], start=where.line))
    inside = {number for number, _ in call}
    chosen = next((number for number in found if number in inside), found[0] if len(found) == 1 else where.line)
    return replace(where, line=chosen)


def _characters(text: str, offset: int) -> int:
    """Return the number of characters in the first `offset` bytes of a line."""
    return len(text.encode()[:offset].decode(errors="ignore"))


def _position(text: str, first: int, after: int, name: str | None) -> int | None:
    found = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(text, first, after) if name else None
    return found.start() if found else None


def _name_of(error: BaseException) -> str | None:
    """Return the name that an error is about, as the code spells it."""
    if isinstance(error, NameError | AttributeError | ModuleNotFoundError):
        return error.name if isinstance(error.name, str) else None
    match = (_FROM_MODULE if isinstance(error, ImportError) else _UNEXPECTED).search(str(error))
    return match["name"] if match and isinstance(error, ImportError | TypeError) else None


def near_names(error: BaseException) -> tuple[str, ...]:
    """Return names close to the one that user code misspelled: a variable, an attribute or method, a module, a name to import."""
    if isinstance(error, ModuleNotFoundError):
        return _near_modules(error.name or "")
    if isinstance(error, ImportError):
        match = _FROM_MODULE.search(str(error))
        return _near(match["name"], dir(sys.modules.get(match["module"]))) if match else ()
    name = _name_of(error)
    if name_remedy(error):
        return ()
    if isinstance(error, NameError):
        return _near(name or "", _visible(error))
    if name is None:
        return ()
    if isinstance(error, TypeError):
        return _near(name, _arguments(error))
    with suppress(Exception):  # raised by an object that cannot list its own attributes
        return _near(name, dir(getattr(error, "obj", None)))
    return ()


def _near_modules(name: str) -> tuple[str, ...]:
    """Return the module close to a missing one: of its own package, else of the user's modules, else of those that are installed."""
    package, _, last = name.rpartition(".")
    if package:
        beside = pkgutil.iter_modules(list(getattr(sys.modules.get(package), "__path__", ())))
        return tuple(f"{package}.{near}" for near in _near(last, (found.name for found in beside)))
    found = list(pkgutil.iter_modules())
    own = [one.name for one in found if not is_library(os.path.join(str(getattr(one.module_finder, "path", "<")), one.name))]
    return _near(name, own) or _near(name, (one.name for one in found))


def _near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    return nearest_names(name, [one for one in known if one != name and (not one.startswith("_") or name.startswith("_"))], limit=1)


def _arguments(error: TypeError) -> list[str]:
    """Return the arguments of the called function, if the frame that raised can see it."""
    match, frame = _UNEXPECTED.search(str(error)), _innermost_frame(error)
    found = {**frame.f_globals, **frame.f_locals}.get(match["function"]) if match and frame else None
    with suppress(TypeError, ValueError):  # no function, or one without a signature
        return list(inspect.signature(found).parameters) if callable(found) else []
    return []


def _visible(error: BaseException) -> list[str]:
    """Return the names that are visible where the error was raised."""
    frame = _innermost_frame(error)
    return [*frame.f_locals, *frame.f_globals, *dir(builtins)] if frame else []


def _innermost_frame(error: BaseException) -> FrameType | None:
    frame: FrameType | None = None
    for found, _ in traceback.walk_tb(error.__traceback__):
        if not is_library(found.f_code.co_filename):
            frame = found
    return frame


def import_remedy(error: BaseException) -> str | None:
    """Return the remedy of a missing module; None for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    return f"Install the package {error.name!r} in this environment, or put the module below the project folder."


_IMPORTS = {
    "F": "from pyspark.sql import functions as F",
    "T": "from pyspark.sql import types as T",
    "functions": "from pyspark.sql import functions",
    "types": "from pyspark.sql import types",
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "ps": "import pyspark.pandas as ps",
    "dp": "from pyspark import pipelines as dp",
    "sdp": "from pyspark import pipelines as sdp",
    "DeltaTable": "from delta.tables import DeltaTable",
    "Decimal": "from decimal import Decimal",
    **dict.fromkeys(("date", "datetime", "timedelta", "timezone"), "from datetime import {}"),
    **dict.fromkeys(("defaultdict", "Counter", "OrderedDict", "namedtuple"), "from collections import {}"),
    **dict.fromkeys(("partial", "reduce", "lru_cache"), "from functools import {}"),
    "Path": "from pathlib import Path",
    "dataclass": "from dataclasses import dataclass",
    **dict.fromkeys(("Any", "Dict", "List", "Optional"), "from typing import {}"),
}
"""The import of names that code of pipelines uses, by name."""
_IN_HELPERS = {
    "dlt": "import dlt",
    "dbutils": "from databricks.sdk.runtime import dbutils",
    "spark": "from databricks.sdk.runtime import spark",
}
"""Names that a pipeline's source files have without an import, and modules that they import do not."""
_OF_SPARK = ("pyspark.sql.functions", "pyspark.sql.types", "pyspark.sql.window", "pyspark.sql")


def name_remedy(error: BaseException) -> str | None:
    """Return the import that a NameError lacks, as it is written; None for a name that no usual module has."""
    name = error.name if isinstance(error, NameError) and isinstance(error.name, str) else ""
    if name in _IN_HELPERS:
        return f"In a helper module: {_IN_HELPERS[name]}"
    found = _IMPORTS.get(name, "").format(name)
    if not found and name in sys.stdlib_module_names:
        found = f"import {name}"
    if not found and name and not name.startswith("_"):
        module = next((one for one in _OF_SPARK if name in getattr(sys.modules.get(one), "__all__", ())), None)
        found = f"from {module} import {name}" if module else ""
    return f"Write in the file: {found}" if found else None


__all__ = ["import_remedy", "innermost_location", "line_of_text", "name_remedy", "near_names", "pointed"]
