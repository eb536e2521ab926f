"""The shell of `lakelet sql`: statements end with a semicolon, its own commands begin with a dot.

History and completion are there where Python has readline.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import TextIO

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace
from lakelet.base.text import aligned, seconds_text
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, error_lines, write_lines, write_note
from lakelet.cli.row_output import Form, limit_of, show_rows
from lakelet.cli.spark_start import spark_starts
from lakelet.files.paths import AnyPath

PROMPT, MORE = "lakelet> ", "    ...> "
COMMANDS = {
    ".timer": "on or off: the seconds of each statement",
    ".mode": "table, csv or json: how rows are written",
    ".output": "FILE: write rows to this new file; without one, to the terminal again",
    ".help": "these commands",
    ".exit": "leave the shell, like exit, quit and Ctrl-D",
}
_MODES = (Form.TABLE, Form.CSV, Form.JSON)
_ENDS = ("exit", "quit", ".exit", ".quit")
_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "ON", "AND", "OR", "NOT", "NULL", "IS",
    "IN", "BETWEEN", "LIKE", "AS", "WITH", "UNION", "ALL", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "count", "sum",
    "avg", "min", "max", "SHOW", "TABLES", "DESCRIBE", "exit",
)  # fmt: skip
_KEPT_LINES = 2_000
_ALL_ROWS = 2**31 - 2
"""What a file gets: the most that Spark takes as a limit, one row more being read."""


def shell(root: AnyPath, form: Form, limit: int | None, space: Namespace | None = None) -> None:
    """Read statements from the terminal and show what they give, until the end of input or `exit`.

    `form` and `limit` are those of the command; `space`: completes names, in place of the storage's namespace.
    """
    write_note("Statements end with ';'. SHOW TABLES; and DESCRIBE name; tell what is there; .help lists commands; exit or Ctrl-D leaves.")
    session = ShellSession(root, form, limit, space)
    try:
        with _line_editing(root):
            for statement in statements(input):
                try:
                    session.do(statement)
                except LakeletError as problem:
                    write_lines(error_lines(problem, sys.stderr), sys.stderr)
                except KeyboardInterrupt:
                    write_note("Interrupted.")
    finally:
        session.close()


class ShellSession:
    """What the commands of the shell have chosen, and the statements that it runs."""

    def __init__(self, root: AnyPath, form: Form, limit: int | None, space: Namespace | None = None) -> None:
        self._root, self._form, self._limit, self._space = root, form, limit, space
        self._timed = True
        self._output: TextIO | None = None

    def do(self, statement: str) -> None:
        """Run a statement, or a command that begins with a dot. Raises USAGE for an unknown command, and what `run_statement` raises."""
        if statement.startswith("."):
            self._command(statement)
            return
        from lakelet.inspection.statements import run_statement

        began = time.monotonic()
        limit = self._limit if self._limit is not None or self._output is None else _ALL_ROWS
        with shown_phases(sys.stderr, "Running the query"):
            found = run_statement(self._root, statement, limit=limit_of(limit, self._form), note=spark_starts, space=self._space)
        if self._output is None:
            show_rows(found, self._form, limit)
        else:
            with redirect_stdout(self._output):
                show_rows(found, self._form, limit)
            self._output.flush()
        if self._timed:
            write_note(seconds_text(time.monotonic() - began))

    def close(self) -> None:
        """Close the file that rows are written to."""
        if self._output is not None:
            self._output.close()
            self._output = None

    def _command(self, text: str) -> None:
        try:
            name, *given = shlex.split(text.rstrip().rstrip(";"))
        except ValueError as problem:
            raise LakeletError("USAGE", f"{text}: {problem}") from None
        if name == ".timer" and given in (["on"], ["off"]):
            self._timed = given == ["on"]
        elif name == ".mode" and len(given) == 1 and given[0] in _MODES:
            self._form = Form(given[0])
        elif name == ".output" and len(given) <= 1:
            self._write_to(given[0] if given else None)
        elif name == ".help" and not given:
            write_lines([Line(line) for line in aligned(list(COMMANDS.items()))], sys.stderr)
        elif name in COMMANDS:
            raise LakeletError("USAGE", f"{name} takes: {COMMANDS[name]}")
        else:
            raise LakeletError(
                "USAGE", f"the shell has no command {name}", nearest=nearest_names(name, COMMANDS), todo="All of them: .help"
            )

    def _write_to(self, path: str | None) -> None:
        """Write rows to a new file; None for the terminal. Raises USAGE where the file cannot be written."""
        self.close()
        if path is not None:
            try:
                self._output = Path(path).expanduser().open("x", encoding="utf-8")
            except OSError as problem:
                raise LakeletError("USAGE", f"{path} cannot be written", why=problem.strerror) from None


def statements(read: Callable[[str], str]) -> Iterator[str]:
    """The statements among the lines that `read` gives for a prompt: they end with a semicolon. Ctrl-C drops what was begun.

    A line that begins with a dot where nothing was begun is a statement by itself.
    """
    begun = ""
    while True:
        try:
            line = read(MORE if begun else PROMPT)
        except EOFError:
            sys.stderr.write("\n")
            return
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            begun = ""
            continue
        if not begun and _is_exit_word(line):
            return
        if not begun and line.startswith("."):
            yield line
            continue
        begun = f"{begun}\n{line}" if begun else line.strip() and line
        if ";" not in line:
            continue
        from lakelet.inspection.scripts import split

        found, begun = split(begun)
        for statement in found:
            if _is_exit_word(statement):
                return
            yield statement


def _is_exit_word(text: str) -> bool:
    return text.strip().rstrip(";").lower() in _ENDS


@contextmanager
def _line_editing(root: AnyPath) -> Iterator[None]:
    """History of this user and completion while the shell is open; nothing of both where Python lacks readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "lakelet" / "sql_history"
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_KEPT_LINES)
    readline.set_completer_delims(" \t\n,()=<>;+-*/")
    readline.set_completer(Completion(root).word)
    readline.parse_and_bind("bind ^I rl_complete" if _is_libedit(readline) else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)
            history.chmod(0o600)


def _is_libedit(readline: ModuleType) -> bool:
    return "libedit" in (readline.__doc__ or "")


class Completion:
    """Words that begin like the one at the cursor: tables, columns, keywords. Names are read at the first completion."""

    def __init__(self, root: AnyPath) -> None:
        self._root = root
        self._names: Sequence[str] | None = None

    def word(self, begin: str, number: int) -> str | None:
        """The word of that number, as readline asks for it."""
        found = self.words(begin)
        return found[number] if number < len(found) else None

    def words(self, begin: str) -> list[str]:
        """All of them, tables and columns in their own case, keywords in the case that the word has."""
        if self._names is None:
            self._names = self._known_names()
        names = [name for name in (*self._names, *COMMANDS) if name.lower().startswith(begin.lower())]
        keywords = [word.lower() if begin.islower() else word for word in _WORDS if begin and word.lower().startswith(begin.lower())]
        return list(dict.fromkeys([*names, *keywords]))

    def _known_names(self) -> list[str]:
        from lakelet.inspection.inspector import list_tables
        from lakelet.storage.eventlog.views import EVENT_LOG, NAMES

        names: set[str] = {EVENT_LOG, *NAMES}
        with suppress(LakeletError, OSError):
            for table in list_tables(self._root):
                parts = table.name.split(".")
                names |= {".".join(parts[at:]) for at in range(len(parts))}
                names |= {str(column["name"]) for column in table.columns}
        return sorted(name if re.fullmatch(r"[\w.]+", name) else f"`{name}`" for name in names)
