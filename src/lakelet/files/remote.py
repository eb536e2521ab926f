"""Files behind a URI: object stores and other remote file systems, through pyarrow. No Spark.

Used by Auto Loader's readers, which run in processes that see nothing but their options. So endpoint and credentials come from the
environment of the process (`stores` says which variables) and are in no option, no URI, no stored file.
"""

from __future__ import annotations

import functools
import io
import os
import posixpath
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote

from lakelet.base.errors import LakeletError
from lakelet.files.stores import SCHEMES, StoreKind, StoreSettings, kind_of, scheme_of

_ENCODE = re.compile(r"[\x00-\x20\"%<>\[\\\]^`{|}#?\x7f]")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(/.*)?", re.DOTALL)
_BUFFER = 1 << 20
_CLAIM_SECONDS = 60  # no `create` takes that long, so the claim of one that old is left over from a process that died
_PAUSE = 0.05

Store = TypeVar("Store", bound="RemoteStore")


def encoded(path: str) -> str:
    """A path with the characters escaped that Spark escapes in `_metadata.file_path`."""
    return _ENCODE.sub(lambda match: f"%{ord(match[0]):02X}", path)


# --- opening a file system ------------------------------------------------------------------------------------------------------------


def one_spelling(scheme: str) -> str:
    """The one name of a store that has several schemes; empty for this machine."""
    kind = kind_of(f"{scheme}:")
    return kind.schemes[0] if kind is not None else "" if scheme == "file" else scheme


def store_name(location: str) -> str:
    """The store of a URI: the one name of its scheme, on Azure with the account, on HDFS with the name node. Empty for this machine.

    Two locations with one store and one `path_in_store` are one place.
    """
    scheme, parts, kind = scheme_of(location) or "", _URI.fullmatch(location), kind_of(location)
    name = one_spelling(scheme)
    if kind is None or parts is None:
        return name
    owner = str(parts[2]).partition("@")[2].partition(".")[0] if kind.bucket else str(parts[2])
    return f"{name}://{owner}" if owner else name


def path_in_store(location: str) -> str:
    """The absolute path of a path of this machine, and the path inside its file system of a URI. The store is not asked."""
    scheme, parts = scheme_of(location), _URI.fullmatch(location)
    if scheme is None:
        return os.path.abspath(location)
    if scheme == "file":
        return os.path.abspath("/" + unquote(location.split(":", 1)[1]).lstrip("/"))
    if parts is None:
        return location
    path = re.sub("/+", "/", parts[3] or "/").rstrip("/")
    return path or "/" if scheme == "hdfs" else str(parts[2]).partition("@")[0] + path


def open_store(location: str, make: Callable[..., Store]) -> tuple[Store, str]:
    """The file system of a URI, as a `RemoteStore` or a class made of it, and the path inside it.

    Asks nothing of the store but, once, where a bucket of Amazon's is, if no region is set.
    Raises CF_SOURCE_UNSUPPORTED for schemes that are not known here, and for a URI without bucket.
    """
    scheme, kind = scheme_of(location), kind_of(location)
    if kind is None:
        todo = f"Known: {', '.join(SCHEMES)}, file, and paths of this machine."
        raise LakeletError("CF_SOURCE_UNSUPPORTED", f"paths with scheme {scheme!r} cannot be read here", todo=todo)
    parts = _URI.fullmatch(location)
    if parts is None or (not parts[2] and kind.bucket):
        todo = f"Write {scheme}://<bucket>/<path>."
        raise LakeletError("CF_SOURCE_UNSUPPORTED", f"{location} names no bucket", todo=todo)
    authority, path = parts[2], re.sub("/+", "/", parts[3] or "/").rstrip("/")
    with _store_errors(f"{scheme}://{authority}"):
        system = _file_system(kind.settings.of(os.environ), authority, kind.identity(os.environ))
    if not kind.bucket:
        return make(system, f"{scheme}://{authority}", "", kind), path or "/"
    bucket, _, host = authority.partition("@")
    return make(system, f"{parts[1]}://", f"@{host}" if host else "", kind), bucket + path


@functools.lru_cache(maxsize=16)
def _file_system(settings: StoreSettings, authority: str, identity: tuple[tuple[str, str], ...]) -> Any:
    """`identity` only separates what must not share an open file system."""
    return settings.file_system(authority)


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Raise STORE_FAILED for errors that a store answers with. A missing file stays a FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        from pyarrow import ArrowException

        if not isinstance(error, (OSError, ArrowException)):
            raise
        kind = kind_of(uri)
        named = f" ({', '.join(kind.variables)})" if kind is not None and kind.variables else ""
        todo = f"Look at the name in the URI, the credentials and the endpoint{named}."
        raise LakeletError("STORE_FAILED", f"{uri}: the store did not do its work", why=str(error), todo=todo) from error


class _StoreFile(io.RawIOBase):
    """A remote file whose store may go away while it is read: that is STORE_FAILED, never a damaged file."""

    def __init__(self, stream: Any, uri: str) -> None:
        self._stream, self._uri = stream, uri

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _store_errors(self._uri):
            return int(self._stream.readinto(buffer))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _store_errors(self._uri):
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        self._stream.close()
        super().close()


# --- one file system ------------------------------------------------------------------------------------------------------------------


class RemoteStore:
    """A remote file system. Paths begin with the bucket (on HDFS with `/`); folders need not be made.

    Args:
        system: the pyarrow file system.
        prefix, suffix: what stands before and after the bucket in a URI as the user wrote it.
        kind: what is special about the store.
    """

    def __init__(self, system: Any, prefix: str, suffix: str, kind: StoreKind) -> None:
        self.system, self._prefix, self._suffix, self.kind = system, prefix, suffix, kind

    def uri(self, path: str) -> str:
        """The path as `_metadata.file_path` shows it."""
        return encoded(self.shown(path))

    def shown(self, path: str) -> str:
        """The path as the user would write it."""
        bucket, slash, rest = path.partition("/")
        return f"{self._prefix}{bucket}{self._suffix}{slash}{rest}"

    def names(self, path: str) -> list[str]:
        """Names inside a folder, in order; none when it does not exist."""
        return sorted(i.base_name for i in self.listed(path))

    def listed(self, path: str, *, recursive: bool = False) -> list[Any]:
        """pyarrow's `FileInfo` of what is in a folder, or below it, from one listing; none when it does not exist.

        Raises STORE_FAILED when there is no such bucket, or the store refuses.
        """
        from pyarrow import fs

        bucket = path.partition("/")[0]
        with _store_errors(self.shown(path)):
            found: list[Any] = self.system.get_file_info(fs.FileSelector(path, recursive=recursive, allow_not_found=True))
            if not found and bucket and self.system.get_file_info(bucket).type == fs.FileType.NotFound:
                raise OSError(f"there is no bucket {bucket}")
            markers = {info.path for info in found if self._is_marker(info)}
        if not markers:
            return found
        folders = {info.path for info in found if info.type == fs.FileType.Directory}
        return [
            fs.FileInfo(info.path, fs.FileType.Directory) if info.is_file and info.path in markers else info
            for info in found
            if not (info.is_file and info.path in markers & folders)
        ]

    def _is_marker(self, info: Any) -> bool:
        """Whether a file is the empty one with which Java's driver marks a folder on Azure; pyarrow sees it when it opens it."""
        if not self.kind.markers or not info.is_file or info.size or info.base_name.startswith("."):
            return False
        try:
            self.system.open_input_stream(info.path).close()
        except FileNotFoundError:
            return False
        except OSError as error:
            if "Not a regular file" not in str(error):
                raise
            return True
        return False

    def is_file(self, path: str) -> bool:
        return bool(self.info(path).is_file)

    def is_folder(self, path: str) -> bool:
        """Whether something lies below the path; an object store has no other folders."""
        from pyarrow import fs

        return bool(self.info(path).type == fs.FileType.Directory)

    def info(self, path: str) -> Any:
        """pyarrow's `FileInfo` of one path."""
        from pyarrow import fs

        with _store_errors(self.shown(path)):
            found = self.system.get_file_info(path)
            return fs.FileInfo(path, fs.FileType.Directory) if self._is_marker(found) else found

    def open(self, path: str) -> BinaryIO:
        with _store_errors(self.shown(path)):
            return cast("BinaryIO", io.BufferedReader(_StoreFile(self.system.open_input_file(path), self.shown(path)), _BUFFER))

    def read(self, path: str) -> bytes:
        with _store_errors(self.shown(path)), self.system.open_input_stream(path) as stream:
            content: bytes = stream.readall()
        return content

    def write(self, path: str, content: bytes) -> None:
        """Write a whole file so that readers see it complete or not at all."""
        with _store_errors(self.shown(path)):
            if self.kind.whole:
                self._put(path, content)
                return
            self._rename(self._put_aside(path, content), path)

    def _put_aside(self, path: str, content: bytes) -> str:
        """Write a file under another name in its folder, and return that path."""
        temporary = f"{posixpath.dirname(path)}/.tmp-{uuid.uuid4().hex}"
        self._put(temporary, content)
        return temporary

    def _put(self, path: str, content: bytes) -> None:
        with self.system.open_output_stream(path) as stream:
            stream.write(content)

    def create(self, path: str, content: bytes) -> bool:
        """Like `write`, but never over an existing file; False when one was there.

        pyarrow has no conditional put. So each process puts a claim, looks at the others', and writes only alone: whoever finds the
        claim of a smaller name takes its own away and waits, whoever has the smallest waits for the others to do so
        (docs/decisions/0011-cloud-storage.md). HDFS refuses a name that is taken (docs/decisions/0106-hdfs.md).
        """
        if self.kind.renames:
            return self._create_by_name(path, content)
        folder, _, name = path.rpartition("/")
        prefix = f".claim-{name}-"
        while not self.is_file(path):
            mine = f"{prefix}{uuid.uuid4().hex}"
            self.write(f"{folder}/{mine}", b"")
            try:
                if self._must_yield(folder, prefix, mine):
                    continue
                if self.is_file(path):
                    return False
                self.write(path, content)
                return True
            finally:
                self.remove(f"{folder}/{mine}")
        return False

    def _create_by_name(self, path: str, content: bytes) -> bool:
        with _store_errors(self.shown(path)):
            temporary = self._put_aside(path, content)
            try:
                self.system.move_new(temporary, path)
            except FileExistsError:
                self.system.delete_file(temporary)
                return False
        return True

    def _must_yield(self, folder: str, prefix: str, mine: str) -> bool:
        """Return False once this claim is the only one; True if another one takes precedence, after waiting for it."""
        while True:
            claims = self._claims(folder, prefix)
            if mine not in claims:
                return True  # taken for dead, by a process that waited longer than any creation takes
            oldest = max(claims.values()) - _CLAIM_SECONDS * 1_000_000_000
            for name in [name for name, modified in claims.items() if modified < oldest]:
                self.remove(f"{folder}/{name}")
                del claims[name]
            first = min(claims)
            if len(claims) == 1:
                return first != mine
            if first != mine:
                self.remove(f"{folder}/{mine}")
                self._wait_for_claims(folder, prefix, frozenset(claims) - {mine})
                return True
            time.sleep(_PAUSE)

    def _claims(self, folder: str, prefix: str) -> dict[str, int]:
        """Names of the claims, and when they were made (nanoseconds, by the clock of the store)."""
        return {i.base_name: i.mtime_ns for i in self.listed(folder) if i.is_file and i.base_name.startswith(prefix)}

    def _wait_for_claims(self, folder: str, prefix: str, others: frozenset[str]) -> None:
        deadline = time.monotonic() + _CLAIM_SECONDS
        while others & self._claims(folder, prefix).keys() and time.monotonic() < deadline:
            time.sleep(_PAUSE)

    def move(self, path: str, target: str) -> None:
        """Give a file another name. A store of objects copies it first, so a process that dies may leave both."""
        with _store_errors(self.shown(path)):
            self._rename(path, target)

    def _rename(self, path: str, target: str) -> None:
        try:
            self.system.move(path, target)
        except NotImplementedError:  # Azure's accounts without folders: a copy appears as a whole
            self.system.copy_file(path, target)
            self.system.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder that is there although it has no files."""
        if self.is_folder(path):
            with suppress(FileNotFoundError), _store_errors(self.shown(path)):
                self.system.delete_dir(path)
            if self.kind.markers:
                self.remove(path)

    def remove(self, path: str) -> None:
        try:
            with _store_errors(self.shown(path)):
                self.system.delete_file(path)
        except FileNotFoundError:
            return
