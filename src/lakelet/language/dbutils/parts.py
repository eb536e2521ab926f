"""Parts of `dbutils`: their base with unknown members, refusals and notices; `fs`, widgets and secrets.

`fs` reads folders and files and refuses to write; widgets have values of parameters, secrets those of the environment.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lakelet.base import secrets
from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.user_code import caller_location
from lakelet.config.path_map import CLOUD_SCHEMES, flag_for, needs_map
from lakelet.files.paths import AnyPath, RemotePath, any_path
from lakelet.files.reads import note_stale_reason
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import SCHEMES, is_set_up, scheme_of
from lakelet.language.registry import Notice, note_look

Note = Callable[[Notice], None]


class UnknownMember(LakeletError, AttributeError):
    """DBUTILS_UNKNOWN; an AttributeError too, so that `hasattr` answers."""


class DBUtilsPart:
    """A part of `dbutils`; asking for what it does not have names what is near."""

    _name = "dbutils"

    def __init__(self, note: Note) -> None:
        self._note = note

    def __getattr__(self, member: str) -> Any:
        if member.startswith("_"):
            raise AttributeError(member)
        known = [name for name in dir(self) if not name.startswith("_")]
        raise UnknownMember(
            "DBUTILS_UNKNOWN",
            f"{self._name} has no {member!r}",
            where=caller_location(),
            nearest=nearest_names(member, known),
            todo=f"Here it has {', '.join(known)}.",
        )

    def __reduce__(self) -> Any:
        raise LakeletError(
            "DBUTILS_REFUSED",
            f"{self._name} is used in a function that runs on Spark's workers",
            why="It is there where the files are loaded only.",
            todo="Ask outside of the function and use the value in it.",
        )

    def help(self, *_: Any) -> None:
        """Shows nothing in a pipeline."""
        self._without_effect("help")

    def _without_effect(self, call: str, why: str = "nothing is shown in a pipeline") -> None:
        self._note(Notice(f"{self._name}.{call} has no effect here: {why}", caller_location()))

    def _refused(self, call: str, why: str, todo: str) -> LakeletError:
        return LakeletError("DBUTILS_REFUSED", f"{self._name}.{call} is not executed", where=caller_location(), why=why, todo=todo)


class Widgets(DBUtilsPart):
    """`dbutils.widgets` of one source file. A value is the argument of the `%run`, else the parameter, else the widget's default."""

    _name = "dbutils.widgets"

    def __init__(self, note: Note, parameters: Mapping[str, str]) -> None:
        super().__init__(note)
        self._parameters = dict(parameters)
        self._defaults: dict[str, str] = {}

    def _given(self, arguments: Mapping[str, str]) -> None:
        self._parameters.update(arguments)

    def text(self, name: str, defaultValue: str = "", label: str | None = None) -> None:
        self._defaults[str(name)] = str(defaultValue)

    def dropdown(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Raises ARGUMENT_INVALID if the default is none of the choices, as on Databricks."""
        self._choice("dropdown", name, [str(defaultValue)], choices)
        self.text(name, defaultValue)

    def combobox(self, name: str, defaultValue: str, choices: Sequence[str] = (), label: str | None = None) -> None:
        self.text(name, defaultValue)

    def multiselect(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """The value is text: the chosen ones, joined by commas. Raises ARGUMENT_INVALID if a default is none of the choices."""
        self._choice("multiselect", name, str(defaultValue).split(",") if defaultValue else [], choices)
        self.text(name, defaultValue)

    def get(self, name: str) -> str:
        """Raises WIDGET_UNKNOWN if the widget is not defined and no parameter has its name."""
        if name in self._parameters:
            return self._parameters[name]
        if name in self._defaults:
            return self._defaults[name]
        raise LakeletError(
            "WIDGET_UNKNOWN",
            f"no widget {name!r} is defined, and no parameter has this name",
            where=caller_location(),
            nearest=nearest_names(name, [*self._defaults, *self._parameters]),
            todo=f"Set it in the pipeline's configuration, or with --param {name}=VALUE.",
        )

    def getArgument(self, name: str, defaultValue: str | None = None) -> str:
        """`get`, with a value for the case that there is none."""
        if defaultValue is not None and name not in self._defaults and name not in self._parameters:
            return str(defaultValue)
        return self.get(name)

    def getAll(self) -> dict[str, str]:
        """The defined widgets with their values."""
        return {name: self.get(name) for name in self._defaults}

    def remove(self, name: str) -> None:
        self._defaults.pop(name, None)

    def removeAll(self) -> None:
        self._defaults.clear()

    def _choice(self, kind: str, name: str, defaults: Sequence[str], choices: Sequence[Any]) -> None:
        known = [str(choice) for choice in choices]
        wrong = next((one for one in defaults if one not in known), None)
        if wrong is not None:
            raise LakeletError(
                "ARGUMENT_INVALID",
                f"the default {wrong!r} of the {kind} {name!r} is none of its choices",
                where=caller_location(),
                nearest=nearest_names(wrong, known),
                todo=f"Choices are {', '.join(known) or 'none'}.",
            )


class SecretMetadata(NamedTuple):
    key: str


class Secrets(DBUtilsPart):
    """`dbutils.secrets`: the secrets of the environment (`base.secrets`)."""

    _name = "dbutils.secrets"

    def __init__(self, note: Note, environ: Mapping[str, str]) -> None:
        super().__init__(note)
        self._environ = environ

    def get(self, scope: str, key: str) -> str:
        """Raises SECRET_MISSING with the name of the variable. The value is blotted out in messages from here on."""
        return secrets.secret(scope, key, self._environ, caller_location())

    def getBytes(self, scope: str, key: str) -> bytes:
        return self.get(scope, key).encode()

    def list(self, scope: str) -> list[SecretMetadata]:
        """The keys of a scope as far as variables tell them: in lower case, with `_` for other signs."""
        prefix = secrets.variable(scope, "")
        return [SecretMetadata(name.removeprefix(prefix).lower()) for name in sorted(self._environ) if name.startswith(prefix)]

    def listScopes(self) -> Any:
        """Raises DBUTILS_REFUSED: names of variables do not tell where the scope ends."""
        raise self._refused(
            "listScopes", "Variables of the environment do not tell scopes.", "Name the scope: dbutils.secrets.list(SCOPE)."
        )


Locate = Callable[[str], str]
"""Function that returns the path of this machine for a path of user code."""

_WHY_NO_WRITING = "A pipeline's files are loaded several times, and what an update writes belongs into its storage."


class FileInfo(NamedTuple):
    """One entry of a folder. Names of folders end in `/`; times are milliseconds since 1970."""

    path: str
    name: str
    size: int
    modificationTime: int

    def isDir(self) -> bool:
        return self.name.endswith("/")

    def isFile(self) -> bool:
        return not self.isDir()


class NoSuchFile(LakeletError, FileNotFoundError):
    """FILE_NOT_FOUND. Its text names Java's exception, because code for Databricks looks for that."""


class FileSystem(DBUtilsPart):
    """`dbutils.fs`. Paths are those of user code and stay so in what is returned."""

    _name = "dbutils.fs"

    def __init__(self, note: Note, locate: Locate) -> None:
        super().__init__(note)
        self._locate = locate

    def ls(self, dir: str) -> list[FileInfo]:
        """Return the entries of a folder, by name; of a file, the file itself. Raises FILE_NOT_FOUND."""
        note_look()
        found = _entries_of(self._local(dir))
        if found is None:
            raise _no_such_file(dir)
        names, is_file = found
        base = dir.rstrip("/")
        shown = [(name, base if is_file else f"{base}/{name}", size, time) for name, size, time in names]
        return [FileInfo(path, name, size, time) for name, path, size, time in shown]

    def head(self, file: str, maxBytes: int = 65536, *, max_bytes: int | None = None) -> str:
        """Return the first `maxBytes` bytes of a file as text. Raises FILE_NOT_FOUND."""
        note_look()
        where = self._local(file)
        count = maxBytes if max_bytes is None else max_bytes
        try:
            if isinstance(where, RemotePath):
                store, path = open_store(str(where), RemoteStore)
                if not store.is_file(path):
                    raise _no_such_file(file)
                with store.open(path) as stream:
                    content = stream.read(count)
            else:
                with where.open("rb") as local:
                    content = local.read(count)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _no_such_file(file) from None
        return content.decode("utf-8", errors="replace")

    def mkdirs(self, dir: str) -> bool:
        """Return True for an existing folder. Raises DBUTILS_REFUSED for a missing one."""
        where = self._local(dir)
        if where.is_dir():
            return True
        raise self._refused("mkdirs", f"{dir} does not exist. {_WHY_NO_WRITING}", f"Make the folder before the update: mkdir -p {where}")

    def rm(self, dir: str, recurse: bool = False) -> bool:
        """Return False for a missing path. Raises DBUTILS_REFUSED for an existing one."""
        where = self._local(dir)
        if not where.exists():
            return False
        raise self._refused("rm", _WHY_NO_WRITING, f"Remove it before the update: rm {'-r ' if recurse else ''}{where}")

    def cp(self, source: str, dest: str, recurse: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("cp", _WHY_NO_WRITING, f"Copy before the update: cp {'-r ' if recurse else ''}{source} {dest}")

    def mv(self, source: str, dest: str, recurse: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("mv", _WHY_NO_WRITING, f"Move it before the update: mv {source} {dest}")

    def put(self, file: str, contents: str, overwrite: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("put", _WHY_NO_WRITING, f"Write {file} before the update, or define a table with these rows.")

    def mounts(self) -> list[Any]:
        """Return an empty list: there are no mounts here."""
        self._without_effect("mounts()", "nothing is mounted; paths are mapped with --map FROM=TO")
        return []

    def refreshMounts(self) -> bool:
        self._without_effect("refreshMounts()", "nothing is mounted; paths are mapped with --map FROM=TO")
        return True

    def mount(self, source: str, mount_point: str, *_: Any, **__: Any) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("mount", "There is nothing to mount on.", f"Name what lies behind it: --map {mount_point}={source}")

    updateMount = mount

    def unmount(self, mount_point: str) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("unmount", "Nothing is mounted.", "Leave the call out; paths are mapped with --map FROM=TO.")

    def _local(self, path: str) -> AnyPath:
        found = user_path(path, self._locate)
        if isinstance(found, RemotePath):
            note_stale_reason(f"{caller_location()} looks at {path}")
        return found


def user_path(path: str, locate: Locate) -> AnyPath:
    """Return the path that a path in user code stands for: mapped by `locate`, local, or a URI that Lakelet can read.

    Raises FILE_NOT_FOUND for a scheme that no store here answers to, and for a cloud of which this machine knows nothing.
    """
    text = locate(str(path))
    scheme = scheme_of(text)
    if scheme == "file":
        return Path("/" + text.split(":", 1)[1].lstrip("/"))
    if scheme is not None and (scheme not in SCHEMES or (scheme in CLOUD_SCHEMES and not is_set_up(scheme))):
        raise _no_such_file(str(path))
    return any_path(text)


def _entries_of(where: AnyPath) -> tuple[list[tuple[str, int, int]], bool] | None:
    """(name, bytes, milliseconds) of what lies in a folder, and whether it is a single file; None if nothing is there."""
    if isinstance(where, RemotePath):
        store, path = open_store(str(where), RemoteStore)
        info = store.info(path)
        if info.is_file:
            return [(posixpath.basename(path), info.size, info.mtime_ns // 1_000_000)], True
        entries = [(i.base_name, i.size, (i.mtime_ns or 0) // 1_000_000, i.is_file) for i in store.listed(path)]
        if not entries and not store.is_folder(path):
            return None
    elif where.is_file():
        stat = where.stat()
        return [(where.name, stat.st_size, stat.st_mtime_ns // 1_000_000)], True
    elif where.is_dir():
        stats = [(child, child.stat()) for child in where.iterdir() if child.exists()]
        entries = [(child.name, stat.st_size, stat.st_mtime_ns // 1_000_000, child.is_file()) for child, stat in stats]
    else:
        return None
    return sorted((name, size, time) if is_file else (name + "/", 0, time) for name, size, time, is_file in entries), False


def _no_such_file(path: str) -> NoSuchFile:
    return NoSuchFile(
        "FILE_NOT_FOUND",
        f"{path} does not exist",
        where=caller_location(),
        why=f"java.io.FileNotFoundException: No such file or directory {path}",
        todo=f"Say where it lies on this machine: {flag_for(path)}" if needs_map(path) else "Put the files there before the update.",
    )
