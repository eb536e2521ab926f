"""The list of commands in `lakelet --help`: by what one wants, each on a whole line."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

OTHERS = "More"
GROUPS: dict[str, dict[str, str]] = {
    "Run": {
        "run": "Bring the pipeline's datasets up to date.",
        "validate": "Load the pipeline and check every definition.",
        "plan": "Show what an update would do, and why.",
        "graph": "Show the datasets and what they read.",
        "env": "List, promote and drop the environments of `run --env`.",
        "preview": "Compute some rows of one dataset and judge its rules on them.",
        "watch": "Validate and preview what changed whenever a file is saved.",
    },
    "Look": {
        "show": "List the stored datasets, or show the rows of one.",
        "sql": "Run a query over the stored tables; without one, a shell.",
        "events": "Show the event log, in sequence order.",
        "schema": "Show how the inferred columns of a dataset came about.",
        "report": "Write a page about datasets, rules and updates.",
        "dashboard": "Serve the page on this machine and follow a running update.",
    },
    "Quality": {
        "rules": "List, check, test, suggest and convert rules.",
        "quarantine": "Show rows that drop rules left out, and give them back.",
        "test": "Run the project's tests with pytest.",
    },
    "Deploy": {
        "deploy": "Deploy the project to a Databricks workspace.",
        "status": "Show what is deployed to a target, and the state of it.",
        "diff": "Compare the local tables with those of a deployed pipeline.",
        "stop": "Stop the active update of a deployed pipeline.",
        "rollback": "Return to the deployment before.",
        "destroy": "Take away what was deployed to a target.",
    },
    "Project": {
        "new": "Write a new project or table, or a copy of lakelet.transforms.",
        "init": "Report what a repository holds and needs.",
        "doctor": "Check what this machine needs to run pipelines.",
        "maintain": "Put small files together, sort them, and remove old ones.",
    },
}
"""Heading → command → what it does. A command that is not here stands under OTHERS with the first sentence of its description."""


class GroupedCommands(TyperGroup):
    """A group of commands whose help lists them under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each heading."""
        shown = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        known = {name for commands in GROUPS.values() for name in commands}
        others = {name: _first_sentence(one) for name, one in shown.items() if name not in known and not getattr(one, "hidden", False)}
        widest = max(map(len, [*known, *others]))
        for heading, commands in {**GROUPS, OTHERS: others}.items():
            rows = [(name.ljust(widest), text) for name, text in commands.items() if name in shown]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _first_sentence(command: Any) -> str:
    text = " ".join((command.help or "").split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""
