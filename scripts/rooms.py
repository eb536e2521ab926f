"""Prints what each module of `src/lakelet` is for: the first sentence of its docstring, room by room (`make rooms`)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "lakelet"


def purpose(module: Path) -> str:
    """The first sentence of a module's docstring; nothing where there is none."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=\.)\s", text.replace("\n", " "), maxsplit=1)[0]


def main() -> None:
    for room in sorted({module.parent for module in PACKAGE.rglob("*.py")}):
        print(f"\n{room.relative_to(PACKAGE.parent)}/  {purpose(room / '__init__.py')}")
        for module in sorted(room.glob("*.py")):
            if module.name != "__init__.py":
                print(f"  {module.name:28} {purpose(module)}")


if __name__ == "__main__":
    main()
