"""The reference pages agree with the program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import typer

from lakelet.base.errors import CODES, ExitCode
from lakelet.cli.main import app
from lakelet.transforms.errors import CODES as OF_TRANSFORMS
from tests.paths import ROOT
from tests.unit.house.error_remedies import remedies

DOCS = ROOT / "docs"

HEADINGS = {
    ExitCode.INVALID: "Wrong usage or invalid definitions: nothing ran, nothing was written",
    ExitCode.FAILED: "The update, or a part of it, failed: independent branches are finished and kept",
    ExitCode.ENVIRONMENT: "This machine cannot run it",
}
INTRODUCTION = """\
# Error codes

Every error carries one of these codes in square brackets, then what happened, where (file and line), why, the nearest name, and what to
do. The exit code of the process follows from it; when several errors are reported together, the highest counts. The last column has what
the error itself says, `…` where it fills in names; it is empty where that depends on the case. This page is made from
`lakelet.base.errors.CODES` and the code that raises them (`LAKELET_UPDATE_GOLDEN=1 pytest tests/unit/house/test_reference.py`).
"""

LIBRARY = """\
## Of the library `lakelet.transforms`

Raised as `TransformError`, a ValueError, where a transform is made or applied; in a pipeline the dataset whose function does so fails.
"""


def table(meanings: Mapping[str, str]) -> list[str]:
    """The rows of a table of codes."""
    todo = remedies()
    says = {
        code: "<br>".join(" ".join(text.split()).replace("|", "\\|").replace("<", "&lt;") for text in todo.get(code, ()))
        for code in meanings
    }
    return [
        "| code | raised when | what to do |",
        "|---|---|---|",
        *(f"| `{code}` | {text} | {says[code]} |" for code, text in meanings.items()),
        "",
    ]


def error_codes_page() -> str:
    parts = [INTRODUCTION]
    for exit_code, heading in HEADINGS.items():
        meanings = {code: info.meaning for code, info in CODES.items() if info.exit_code is exit_code}
        parts.append("\n".join([f"## Exit code {int(exit_code)}: {heading[0].lower()}{heading[1:]}", "", *table(meanings)]))
    parts.append("\n".join([LIBRARY, *table(OF_TRANSFORMS)]))
    return "\n".join(parts)


def test_most_codes_say_on_the_page_what_to_do():
    todo = remedies()
    assert todo["TABLE_PLACE_MISSING"] == ("Put its files there, or name another path: …",)
    assert sum(bool(todo.get(code)) for code in CODES) > len(CODES) / 2


def test_error_codes_page_lists_exactly_the_codes():
    path = DOCS / "error-codes.md"
    if os.environ.get("LAKELET_UPDATE_GOLDEN"):
        path.write_text(error_codes_page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == error_codes_page()
    assert {info.exit_code for info in CODES.values()} == set(HEADINGS)


def commands() -> dict[str, set[str]]:
    """Options of every listed command, those of groups included."""
    root = typer.main.get_command(app)
    found = {name: command for name, command in root.commands.items() if not command.hidden}
    for group in ("rules", "quarantine", "new"):
        found |= {f"{group} {name}": command for name, command in found.pop(group).commands.items()}
    return {
        name: {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")} for name, command in found.items()
    }


def test_command_line_page_names_every_command_and_option_and_no_other():
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    shared = next(s for s in sections if s.startswith("Options of"))
    described = {}
    for section in sections:
        for name in re.findall(r"`lakelet ([a-z ]+?)[`\[ ]*(?:`|\[|DIR|QUERY|--)", section.splitlines()[0]):
            text = section + (shared if name in ("run", "validate", "plan", "graph") and section is not shared else "")
            described.setdefault(name.strip(), set()).update(re.findall(r"(--[a-z][a-z0-9-]*)", text))
    for name, options in commands().items():
        assert described.get(name) == options - {"--help"}, name
