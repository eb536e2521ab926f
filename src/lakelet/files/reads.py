"""Watches what is read from the machine while a pipeline is loaded and analysed, through Python's audit events and `os.stat`.

The signature of each file and folder is taken before it is read, so that a change during an update counts as a change. What cannot be
compared later (a connection, a process, a file that is written, output) is a stale reason: a reason why an idle answer is refused. It names
the line of user code that does it.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any

from lakelet.base.patching import Patch, put_on, without_context
from lakelet.base.text import TextEnum
from lakelet.base.user_code import PACKAGE, is_library
from lakelet.files import signatures
from lakelet.files.audit import Listener, is_unheard, unheard
from lakelet.files.old_pathlib import OLD_PATHLIB

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ENGINE = frozenset({"pyspark", "py4j", "delta"})
PASSES_ON = "__lakelet_passes_on__"
"""Name in modules that replace functions of Python: a call of the replacement counts as a call by its caller."""
_NO_FILES = ("/proc/", "/sys/", "/dev/")
_DOUBTFUL = frozenset(
    (
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostname", "socket.sendto"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn", "syslog.syslog"),
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("shutil.copyfile", "shutil.move", "shutil.rmtree", "shutil.make_archive", "tempfile.mkstemp", "tempfile.mkdtemp", "os.chdir"),
        *("sqlite3.connect", "ctypes.dlopen", "mmap.__new__", "urllib.Request", "http.client.connect", "ftplib.connect", "smtplib.connect"),
        *("webbrowser.open", "os.kill", "os.fwalk", "os.getxattr", "os.listxattr"),
    )
)


class Access(TextEnum):
    """Kinds of reads: the content of a file, the names in a folder, or the names with sizes and times."""

    FILE = "file"
    NAMES = "names"
    ENTRIES = "entries"


_SIGNATURES: Mapping[Access, Callable[[str], str]] = {
    Access.FILE: signatures.of_file,
    Access.NAMES: signatures.of_names,
    Access.ENTRIES: signatures.of_entries,
}


@dataclass
class Reads:
    """The reads so far. `found`: the signature of each file and folder before its first read; `stale_reasons`: reasons why an idle
    answer is refused, as what was read cannot be compared later.

    `own`: Lakelet's folders, which are compared in another way; reads of user code there are such reasons. `passing`: this
    process's temporary folder, another one in each process; Spark's folder for added files lies in it and is on Python's path.
    """

    own: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    found: dict[tuple[Access, str], str] = field(default_factory=dict)
    stale_reasons: list[str] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[Callable[[], None]]:
        """Note what this process reads in the block, in all its threads, or until the yielded function is called. One at a time."""
        global _active
        output = (sys.stdout, sys.stderr)
        listener = Listener({event: functools.partial(self._hear, event) for event in (*_NOTED, *_DOUBTFUL)})
        functions = put_on(UNHEARD)
        _active = self
        sys.stdout, sys.stderr = _Output(sys.stdout, self), _Output(sys.stderr, self)
        listener.begin()

        def end() -> None:
            global _active
            if _active is self:
                listener.end()
                functions.take_off()
                sys.stdout, sys.stderr = output
                _active = None

        try:
            yield end
        finally:
            end()

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event in _NOTED:
                _NOTED[event](self, arguments)
            elif not _is_bytecode(arguments) and (user := _user_line()) is not None:
                self.add_stale_reason(f"{user} calls {event}")
        except Exception as problem:  # what a listener raises would end what the event announces
            self.add_stale_reason(f"{event}: {type(problem).__name__}")

    def note(self, access: Access, path: str) -> None:
        """Note a file or folder that is about to be read."""
        if "__pycache__" in path:  # the sources of modules are compared
            return
        if access is Access.NAMES and path.startswith(tuple(folder + os.sep for folder in self.passing)):
            return
        if _is_no_file(path) or path.startswith(tuple(folder + os.sep for folder in self.own)):
            user = _user_line()
            if user is not None:
                self.add_stale_reason(f"{user} reads {path}")
            return
        if (access, path) not in self.found:
            self.found[access, path] = _SIGNATURES[access](path)

    def add_stale_reason(self, text: str) -> None:
        """Note a reason why the next update must start Spark."""
        if text not in self.stale_reasons:
            self.stale_reasons.append(text)


def note_path(path: os.PathLike[str]) -> None:
    """Note, while reads are watched, that the update depends on whether this path exists."""
    if _active is not None:
        _active.note(Access.FILE, os.path.abspath(path))


def module_names(folder: os.PathLike[str]) -> list[str]:
    """Return the names in a folder; while reads are watched, the update depends on these names, not on what the files hold."""
    with unheard():
        names = os.listdir(folder)
    if _active is not None:
        _active.note(Access.NAMES, os.path.abspath(folder))
    return names


def note_stale_reason(text: str) -> None:
    """Note, while reads are watched, a read or an effect that cannot be compared later."""
    if _active is not None:
        _active.add_stale_reason(text)


# --- audit events -------------------------------------------------------------------------------------------------------------------------

_active: Reads | None = None


def _is_bytecode(arguments: Sequence[Any]) -> bool:
    """Return whether an event is about a compiled module, which Python writes when it imports one: the sources are compared."""
    return any(isinstance(argument, str) and "__pycache__" in argument for argument in arguments)


def _on_open(reads: Reads, arguments: Sequence[Any]) -> None:
    path, _, flags = arguments
    if isinstance(path, int) or path is None:
        return
    if isinstance(flags, int) and flags & _WRITING:
        user = None if _is_bytecode(arguments) else _user_line()
        if user is not None:
            reads.add_stale_reason(f"{user} writes {os.fsdecode(path)}")
        return
    reads.note(Access.FILE, os.path.abspath(os.fsdecode(path)))


def _on_listing(reads: Reads, arguments: Sequence[Any]) -> None:
    path = arguments[0]
    if isinstance(path, int):
        reads.add_stale_reason("a folder is listed by its file descriptor")
        return
    folder = os.path.abspath(os.fsdecode("." if path is None else path))
    reads.note(Access.NAMES if _is_import() else Access.ENTRIES, folder)


def _on_glob(reads: Reads, arguments: Sequence[Any]) -> None:
    if isinstance(arguments[0], (str, bytes)):  # parts without a wildcard are found without any event
        reads.note(Access.FILE, os.path.abspath(os.fsdecode(arguments[0])))


_NOTED: Mapping[str, Callable[[Reads, Sequence[Any]], None]] = {
    "open": _on_open,
    "os.listdir": _on_listing,
    "os.scandir": _on_listing,
    "glob.glob": _on_glob,
}


_EXISTENCE = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink", "resolve", "realpath", "_joinrealpath")
)
"""Functions of Python that only ask whether a path exists and of which kind it is."""


def _noting(original: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """Return a replacement of `os.stat` or `os.lstat`, which raise no audit events, that notes the path."""

    @functools.wraps(original)
    def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        reads = _active
        if reads is not None and not isinstance(path, int) and not is_unheard():
            with unheard():
                _on_stat(reads, path, relative=kwargs.get("dir_fd") is not None)
        return original(path, *args, **kwargs)

    return stat


UNHEARD: tuple[Patch, ...] = (
    *(Patch("os", name, without_context(_noting), "os.stat raises no audit event", "3.10") for name in ("stat", "lstat")),
    *OLD_PATHLIB,
)
"""Patches that note what no audit event announces, while reads are watched. `since`: versions of Python."""


def _on_stat(reads: Reads, path: Any, *, relative: bool) -> None:
    name = os.path.abspath(os.fsdecode(path))
    reads.note(Access.FILE, name)
    frame = _first(sys._getframe(2))
    callers = {f.f_code.co_name for f in (frame, frame and frame.f_back) if f is not None}
    if relative or (callers.isdisjoint(_EXISTENCE) and signatures.is_folder(signatures.of_file(name))):
        user = _user_line()
        if user is not None:
            reads.add_stale_reason(f"{user} asks for facts about the folder {name}")


def _first(frame: FrameType | None) -> FrameType | None:
    """Return the first of a frame and its callers that is neither of this module nor of a replacement that passes calls on."""
    while frame is not None and (frame.f_code.co_filename == __file__ or PASSES_ON in frame.f_globals):
        frame = frame.f_back
    return frame


def _is_import() -> bool:
    """Return whether Python's import system is the caller."""
    frame = _first(sys._getframe(1))
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _user_line() -> str | None:
    """Return `file:line` of the user code that caused the event; None where Lakelet or Spark did."""
    frame = _first(sys._getframe(1))
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) or str(frame.f_globals.get("__name__", "")).partition(".")[0] in _ENGINE:
            return None
        if not is_library(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _is_no_file(path: str) -> bool:
    """Whether a path is of a device or of the kernel, whose content has no state to compare. Files in shared memory are files."""
    return path.startswith(_NO_FILES) and not path.startswith("/dev/shm/")


def _is_below_user_code() -> bool:
    """Return whether user code is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name) and not name.endswith(f"{os.sep}lakelet"):  # which is the script that starts the command
            return True
        frame = frame.f_back
    return False


class _Output:
    """Standard output or error while reads are watched: an update without Spark would not print what user code prints."""

    def __init__(self, stream: IO[str], reads: Reads) -> None:
        self._stream, self._reads = stream, reads

    def write(self, text: str) -> int:
        if _is_below_user_code():
            self._reads.add_stale_reason("the code prints while it is loaded")
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer" and _is_below_user_code():
            self._reads.add_stale_reason("the code prints bytes while it is loaded")
        return getattr(self._stream, name)
