"""Files behind a URI: object stores and other remote file systems, through pyarrow. No Spark.

Used by Auto Loader's readers, which run in processes that see nothing but their options. So endpoint and credentials come from the
environment of the process (`AWS_*` for S3; for the others what pyarrow looks at by itself) and are in no option, no URI, no stored file.
"""

from __future__ import annotations

import functools
import io
import os
import posixpath
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote

from lakelet.base.errors import LakeletError

S3_SCHEMES = ("s3a", "s3", "s3n")
SCHEMES = (*S3_SCHEMES, "gs", "abfss", "abfs", "hdfs")
_SIGNS = {
    **dict.fromkeys(S3_SCHEMES, (("AWS_",), ("~/.aws",))),
    **dict.fromkeys(("abfss", "abfs"), (("AZURE_",), ("~/.azure",))),
    "gs": (("GOOGLE_", "GCE_"), ("~/.config/gcloud",)),
}
"""By scheme: prefixes of environment variables, and files, that hold the credentials for its stores."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_ENCODE = re.compile(r"[\x00-\x20\"%<>\[\\\]^`{|}#?\x7f]")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(/.*)?", re.DOTALL)
_BUFFER = 1 << 20
_CLAIM_SECONDS = 60  # no `create` takes that long, so the claim of one that old is left over from a process that died
_PAUSE = 0.05

Store = TypeVar("Store", bound="RemoteStore")


def scheme_of(location: str) -> str | None:
    """The scheme of a URI in lower case; None for a path. One letter before a colon is not a scheme."""
    found = _SCHEME.match(location)
    return found[1].lower() if found else None


def is_s3(location: object) -> bool:
    """Whether a location (text or anything that prints as one) lies on S3."""
    return scheme_of(str(location)) in S3_SCHEMES


def is_set_up(scheme: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether this machine has credentials for the stores of a scheme; without them pyarrow waits for the network in vain."""
    variables, files = _SIGNS.get(scheme, ((), ()))
    given = os.environ if environ is None else environ
    return any(name.startswith(variables) for name in given) or any(os.path.exists(os.path.expanduser(file)) for file in files)


def encoded(path: str) -> str:
    """A path with the characters escaped that Spark escapes in `_metadata.file_path`."""
    return _ENCODE.sub(lambda match: f"%{ord(match[0]):02X}", path)


# --- S3: where it is ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class S3Settings:
    """Address of S3, without credentials. `endpoint` is a URL, None for Amazon's own."""

    endpoint: str | None
    region: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> S3Settings:
        """From `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, and `AWS_REGION` or `AWS_DEFAULT_REGION`."""
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or None
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else None)
        return cls(endpoint, region)

    def variables(self) -> dict[str, str]:
        """The environment of a process that must find the same S3."""
        pairs = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region}
        return {name: value for name, value in pairs.items() if value}

    def delta_options(self) -> dict[str, str]:
        """Storage options for delta-rs, which takes the credentials from the environment itself."""
        plain = bool(self.endpoint and self.endpoint.startswith("http:"))
        return {**self.variables(), **({"AWS_ALLOW_HTTP": "true"} if plain else {})}

    def spark_settings(self) -> dict[str, str]:
        """Spark settings for s3a. Its keys come from the environment of each Java process."""
        found = {f"fs.{scheme}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem" for scheme in S3_SCHEMES}
        if self.region:
            found["fs.s3a.endpoint.region"] = self.region
        if self.endpoint:
            found["fs.s3a.endpoint"] = self.endpoint
            found["fs.s3a.path.style.access"] = "true"
            found["fs.s3a.connection.ssl.enabled"] = str(not self.endpoint.startswith("http:")).lower()
        return {f"spark.hadoop.{key}": value for key, value in found.items()}


def delta_options(location: object) -> dict[str, str] | None:
    """Storage options with which delta-rs opens a table there; None where it needs none."""
    return S3Settings.of(os.environ).delta_options() if is_s3(location) else None


# --- opening a file system ------------------------------------------------------------------------------------------------------------


def one_spelling(scheme: str) -> str:
    """The one name of a store that has several schemes; empty for this machine."""
    return {"file": "", "s3": "s3a", "s3n": "s3a"}.get(scheme, scheme)


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


def open_store(location: str, kind: Callable[..., Store]) -> tuple[Store, str]:
    """The file system of a URI, as a `RemoteStore` or a class made of it, and the path inside it.

    Asks nothing of the store but, once, where a bucket of Amazon's is, if no region is set.
    Raises CF_SOURCE_UNSUPPORTED for schemes that are not known here, and for a URI without bucket.
    """
    scheme = scheme_of(location)
    if scheme not in SCHEMES:
        todo = f"Known: {', '.join(SCHEMES)}, file, and paths of this machine."
        raise LakeletError("CF_SOURCE_UNSUPPORTED", f"paths with scheme {scheme!r} cannot be read here", todo=todo)
    parts = _URI.fullmatch(location)
    if parts is None or (not parts[2] and scheme != "hdfs"):
        todo = f"Write {scheme}://<bucket>/<path>."
        raise LakeletError("CF_SOURCE_UNSUPPORTED", f"{location} names no bucket", todo=todo)
    authority, path = parts[2], re.sub("/+", "/", parts[3] or "/").rstrip("/")
    if scheme == "hdfs":
        return kind(_hdfs(authority), f"hdfs://{authority}", "", whole=False), path or "/"
    bucket, _, host = authority.partition("@")
    if scheme in S3_SCHEMES:
        identity = (os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_PROFILE"), os.environ.get("AWS_SESSION_TOKEN"))
        system = _s3(S3Settings.of(os.environ), bucket, identity)
    else:
        system = _gcs() if scheme == "gs" else _azure(host.partition(".")[0])
    return kind(system, f"{parts[1]}://", f"@{host}" if host else "", whole=scheme not in ("abfss", "abfs")), bucket + path


@functools.lru_cache(maxsize=16)
def _s3(settings: S3Settings, bucket: str, identity: tuple[str | None, ...]) -> Any:
    """`identity` only separates what must not share a cached file system."""
    from pyarrow import fs

    endpoint: dict[str, str] = {}
    if settings.endpoint:
        scheme, _, host = settings.endpoint.rpartition("://")
        endpoint = {"scheme": scheme or "https", "endpoint_override": host.rstrip("/")}
    with _store_errors(f"s3://{bucket}"):
        region = settings.region or fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(region=region, allow_delayed_open=True, **endpoint)


@functools.lru_cache(maxsize=1)
def _gcs() -> Any:
    from pyarrow import fs

    return fs.GcsFileSystem()


@functools.lru_cache(maxsize=16)
def _azure(account: str) -> Any:
    from pyarrow import fs

    return fs.AzureFileSystem(account_name=account, account_key=os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"))


@functools.lru_cache(maxsize=16)
def _hdfs(authority: str) -> Any:
    from pyarrow import fs

    host, _, port = authority.partition(":")
    return fs.HadoopFileSystem(host or "default", int(port or 0))


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Raise STORE_FAILED for errors that a store answers with. A missing file stays a FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        todo = "Look at the bucket's name, the credentials and the endpoint (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, AWS_REGION)."
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
        whole: a file appears when its stream is closed, never before, so that a write needs no other name first.
    """

    def __init__(self, system: Any, prefix: str, suffix: str, *, whole: bool) -> None:
        self.system, self._prefix, self._suffix, self.whole = system, prefix, suffix, whole

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
        return found

    def is_file(self, path: str) -> bool:
        return bool(self.info(path).is_file)

    def is_folder(self, path: str) -> bool:
        """Whether something lies below the path; an object store has no other folders."""
        from pyarrow import fs

        return bool(self.info(path).type == fs.FileType.Directory)

    def info(self, path: str) -> Any:
        """pyarrow's `FileInfo` of one path."""
        with _store_errors(self.shown(path)):
            return self.system.get_file_info(path)

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
            if self.whole:
                self._put(path, content)
                return
            folder = posixpath.dirname(path)
            temporary = f"{folder}/.tmp-{uuid.uuid4().hex}"
            self.system.create_dir(folder)
            self._put(temporary, content)
            self.system.move(temporary, path)

    def _put(self, path: str, content: bytes) -> None:
        with self.system.open_output_stream(path) as stream:
            stream.write(content)

    def create(self, path: str, content: bytes) -> bool:
        """Like `write`, but never over an existing file; False when one was there.

        pyarrow has no conditional put. So each process puts a claim, looks at the others', and writes only alone: whoever finds the
        claim of a smaller name takes its own away and waits, whoever has the smallest waits for the others to do so
        (docs/decisions/0011-cloud-storage.md).
        """
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
            self.system.move(path, target)

    def remove(self, path: str) -> None:
        try:
            with _store_errors(self.shown(path)):
                self.system.delete_file(path)
        except FileNotFoundError:
            return
