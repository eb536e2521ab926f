"""How a Delta log names the files of its table: by paths below the table's folder, or by absolute ones. No Spark.

A table may have files elsewhere: Delta's shallow clones do, and the tables of environments. Paths in a log are encoded as in URIs; those of
absolute files are written here as Spark writes them, because a file is removed under the name under which it was added.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from lakelet.files.paths import AnyPath, any_path

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_SAFE = "/@_-!.~'()*,;:$&+="
"""What Java leaves as it is in the path of a URI, besides letters of any language."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""Of base 85, in which Delta's protocol writes the names of files with marks for deleted rows."""
_NAME_LENGTH = 20
_VECTOR = re.compile(r"(?:(.*)/)?deletion_vector_([0-9a-f-]{36})\.bin")


def is_absolute(path: str) -> bool:
    """Whether a path in a log does not depend on the folder of the table."""
    return _ABSOLUTE.match(path) is not None


def folder_prefix(table: AnyPath) -> str:
    """What makes the relative path of a file of a table absolute, if it is put before it."""
    if not isinstance(table, Path):
        return table.as_uri().rstrip("/") + "/"
    return "file:" + "".join(c if ord(c) > 127 else quote(c, safe=_SAFE) for c in table.as_posix()).rstrip("/") + "/"


def located(table: AnyPath, path: str) -> AnyPath:
    """Where the file lies that the log of `table` calls `path`."""
    if not is_absolute(path):
        return table / unquote(path)
    return Path("/" + unquote(path).removeprefix("file:").lstrip("/")) if path.startswith(("/", "file:")) else any_path(unquote(path))


def marks_path(marks: Mapping[str, Any] | None) -> str | None:
    """The path of the file in which rows are marked as deleted; None where there is none, or the log itself has the marks."""
    if not marks or marks["storageType"] == "i":
        return None
    text = str(marks["pathOrInlineDv"])
    if marks["storageType"] == "p":
        return text
    folder, digits = text[:-_NAME_LENGTH], [_DIGITS.index(digit) for digit in text[-_NAME_LENGTH:]]
    words = [functools.reduce(lambda value, digit: value * 85 + digit, digits[at : at + 5], 0) for at in range(0, _NAME_LENGTH, 5)]
    name = f"deletion_vector_{uuid.UUID(int=functools.reduce(lambda value, word: (value << 32) | word, words, 0))}.bin"
    return f"{folder}/{name}" if folder else name


def absolute_marks(marks: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The description of marks with the absolute path of their file. `prefix`: see `folder_prefix`."""
    return {**marks, "storageType": "p", "pathOrInlineDv": f"{prefix}{marks_path(marks)}"} if marks["storageType"] == "u" else marks


def relative_marks(marks: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The opposite of `absolute_marks`; marks elsewhere stay as they are."""
    path = str(marks["pathOrInlineDv"])
    found = _VECTOR.fullmatch(path.removeprefix(prefix)) if marks["storageType"] == "p" and path.startswith(prefix) else None
    if found is None:
        return marks
    words = [int.from_bytes(uuid.UUID(found[2]).bytes[at : at + 4], "big") for at in range(0, 16, 4)]
    name = "".join(_DIGITS[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    return {**marks, "storageType": "u", "pathOrInlineDv": (found[1] or "") + name}


__all__ = ["absolute_marks", "folder_prefix", "is_absolute", "located", "marks_path", "relative_marks"]
