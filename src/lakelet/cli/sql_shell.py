"""The shell of `lakelet sql`: statements end with a semicolon; history and completion where Python has readline."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from lakelet.base.errors import LakeletError
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import error_lines, write_lines, write_note
from lakelet.cli.row_output import Form, limit_of, show_rows
from lakelet.cli.spark_start import spark_starts
from lakelet.files.paths import AnyPath

PROMPT, MORE = "lakelet> ", "    ...> "
_ENDS = ("exit", "quit", ".exit", ".quit")
_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "ON", "AND", "OR", "NOT", "NULL", "IS",
    "IN", "BETWEEN", "LIKE", "AS", "WITH", "UNION", "ALL", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "count", "sum",
    "avg", "min", "max", "SHOW", "TABLES", "DESCRIBE", "exit",
)  # fmt: skip
_KEPT_LINES = 2_000


def shell(root: AnyPath, form: Form, limit: int | None) -> None:
    """Read statements from the terminal and show what they give, until the end of input or `exit`."""
    from lakelet.inspection.statements import run_statement

    write_note("Statements end with ';'. SHOW TABLES; and DESCRIBE name; tell what is there; exit or Ctrl-D leaves.")
    with _line_editing(root):
        for statement in statements(input):
            try:
                with shown_phases(sys.stderr, "Running the query"):
                    found = run_statement(root, statement, limit=limit_of(limit, form), note=spark_starts)
                show_rows(found, form, limit)
            except LakeletError as problem:
                write_lines(error_lines(problem, sys.stderr), sys.stderr)
            except KeyboardInterrupt:
                write_note("Interrupted.")


def statements(read: Callable[[str], str]) -> Iterator[str]:
    """The statements among the lines that `read` gives for a prompt: they end with a semicolon. Ctrl-C drops what was begun."""
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
        names = [name for name in self._names if name.lower().startswith(begin.lower())]
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
