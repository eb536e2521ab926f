"""The list of commands in `lakelet --help`: by what one wants, each on a whole line."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

OTHERS = "More"
GROUPS = {
    "Run": ("run", "validate", "plan", "graph", "env", "preview", "watch"),
    "Look": ("show", "sql", "events", "diff", "schema", "report", "dashboard"),
    "Quality": ("rules", "quarantine", "test"),
    "Deploy": ("deploy", "status", "stop", "rollback", "destroy"),
    "Project": ("new", "init", "doctor", "maintain", "publish"),
}
"""Heading → commands; all others stand under OTHERS. What a command does is the first sentence of its description."""


class GroupedCommands(TyperGroup):
    """A group of commands whose help lists them under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each heading."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command for name, command in known.items() if not getattr(command, "hidden", False)}
        others = tuple(name for name in shown if not any(name in commands for commands in GROUPS.values()))
        widest = max(map(len, shown))
        for heading, commands in {**GROUPS, OTHERS: others}.items():
            rows = [(name.ljust(widest), _first_sentence(shown[name])) for name in commands if name in shown]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _first_sentence(command: Any) -> str:
    text = " ".join((command.help or "").split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""
