"""HDFS for pyarrow, through the Python package hdfs-native: a client without Java and without an installed Hadoop."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyarrow import PythonFile, fs

from lakelet.base.errors import LakeletError


class HdfsFileSystem(fs.PyFileSystem):  # type: ignore[misc]
    """A name node and its data nodes. Paths begin with `/`.

    Args:
        authority: what stands between `//` and the path of a URI: host and port, or the name of a service of the user's `hdfs-site.xml`.
        settings: of Hadoop, for the client; they win over those of the user's files.

    Asks nothing of the name node. Raises HDFS_MISSING without the package, and OSError for a name without an address.
    """

    def __init__(self, authority: str, settings: Mapping[str, str]) -> None:
        super().__init__(_Handler(_client(authority, settings)))

    def move_new(self, path: str, target: str) -> None:
        """Give a file another name, never over an existing file, which the name node decides. Raises FileExistsError."""
        self.handler.rename(path, target, overwrite=False)


def _client(authority: str, settings: Mapping[str, str]) -> Any:
    try:
        from hdfs_native import Client
    except ImportError:
        raise LakeletError(
            "HDFS_MISSING",
            "HDFS is read with the Python package hdfs-native, which is not installed here",
            todo="Install the extra: pip install 'lakelet[hdfs]' (on a cluster: in the Python environment of its workers too).",
        ) from None
    try:
        with _errors():
            return Client(f"hdfs://{authority}", dict(settings))
    except OSError as error:
        if ":" in authority:
            raise
        todo = "write hdfs://<host>:<port>/, or let HADOOP_CONF_DIR name a folder with the hdfs-site.xml that knows the name"
        raise OSError(f"{error}: {todo}") from error


@contextmanager
def _errors() -> Iterator[None]:
    """Raise OSError for what the client reports otherwise, and without the name node's Java stack. The classes of OSError stay."""
    try:
        yield
    except OSError as error:
        raise type(error)(_first_line(error)) from error
    except RuntimeError as error:
        raise OSError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).replace("\\n", "\n").partition("\n")[0]


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]
    """What pyarrow asks of a file system that is written in Python."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_type_name(self) -> str:
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[Any]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> Any:
        try:
            with _errors():
                return _file_info(self._client.get_file_info(path))
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """A folder that is removed by others while it is listed is listed again."""
        while True:
            try:
                with _errors():
                    found = list(self._client.list_status(selector.base_dir, selector.recursive))
                return [_file_info(status) for status in found if status.path != selector.base_dir]
            except FileNotFoundError:
                if self._info(selector.base_dir).type != fs.FileType.NotFound:
                    continue
                if not selector.allow_not_found:
                    raise
                return []

    def create_dir(self, path: str, recursive: bool) -> None:
        with _errors():
            self._client.mkdirs(path, create_parent=recursive)

    def delete_dir(self, path: str) -> None:
        with _errors():
            self._client.delete(path, True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        for info in self.get_file_info_selector(fs.FileSelector(path, allow_not_found=missing_dir_ok)):
            self.delete_dir(info.path)

    def delete_root_dir_contents(self) -> None:
        self.delete_dir_contents("/")

    def delete_file(self, path: str) -> None:
        with _errors():
            if not self._client.delete(path, False):
                raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        self.rename(src, dest, overwrite=True)

    def rename(self, path: str, target: str, *, overwrite: bool) -> None:
        with _errors():
            self._client.rename(path, target, overwrite)

    def copy_file(self, src: str, dest: str) -> None:
        with self.open_input_stream(src) as source, self.open_output_stream(dest, {}) as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        with _errors():
            return PythonFile(_Stream(self._client.read(path)), mode="r")

    def open_output_stream(self, path: str, metadata: Mapping[str, str]) -> Any:
        from hdfs_native import WriteOptions

        with _errors():
            stream = self._client.create(path, WriteOptions(overwrite=True, create_parent=True))
        return PythonFile(_Stream(stream), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str]) -> Any:
        with _errors():
            return PythonFile(_Stream(self._client.append(path)), mode="w")


class _Stream:
    """A file of the client, whose errors are those of a file system."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        with _errors():
            content: bytes = self._file.read(size)
        return content

    def write(self, content: Any) -> int:
        with _errors():
            return int(self._file.write(content))

    def seek(self, offset: int, whence: int = 0) -> int:
        with _errors():
            self._file.seek(offset, whence)
            return int(self._file.tell())

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        """Bytes are where they must be when the file is closed."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with _errors():
                self._file.close()


def _file_info(status: Any) -> Any:
    kind = fs.FileType.Directory if status.isdir else fs.FileType.File
    size = None if status.isdir else status.length
    return fs.FileInfo(status.path, kind, size=size, mtime_ns=status.modification_time * 1_000_000)
