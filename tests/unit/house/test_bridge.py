"""One package reaches into the JVM, and a page has a row for each of its functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "src" / "lakelet"
BRIDGE = PACKAGE / "jvm"
PAGE = ROOT / "docs" / "decisions" / "0085-one-bridge.md"
PRIVATE = frozenset(
    {
        *("_jvm", "_gateway", "_gateway_client", "_sc", "_jsc", "_jsparkSession", "_jdf", "_jc", "_jo", "_jsq", "_jwrite", "_jreader"),
        *("_jconf", "_jmap", "_jseq", "_jrdd", "_jschema", "_jcatalog", "_active_spark_context", "_wrap_function"),
    }
)
"""Attributes of pyspark that lead into Java, and functions of its own that do."""
NAMES_OF_USERS = "update/idle/stale_reasons.py"
"""Names them because the code of users may: it reaches nothing."""


def reaches(tree: ast.AST) -> Iterator[str]:
    """Each place that names a private attribute or imports py4j."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            yield f"{node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:
            yield f"{node.lineno}: {node.value!r}"
        elif isinstance(node, ast.ImportFrom):
            module, names = node.module or "", {alias.name for alias in node.names}
            if module.partition(".")[0] == "py4j" or module == "pyspark.java_gateway" or (module.startswith("pyspark") and names & PRIVATE):
                yield f"{node.lineno}: from {module}"
        elif isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == "py4j" for alias in node.names):
            yield f"{node.lineno}: import py4j"


def test_nothing_outside_of_the_bridge_reaches_into_the_jvm() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{place}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if BRIDGE not in path.parents and path != PACKAGE / NAMES_OF_USERS
        for place in reaches(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "plan = frame._jdf.queryExecution()",
        "getattr(spark, '_jvm')",
        "def f():\n    from py4j.protocol import Py4JError",
        "import py4j.java_gateway as gateway",
        "from pyspark.java_gateway import launch_gateway",
        "from pyspark.sql.udf import _wrap_function",
    ],
)
def test_a_new_reach_would_be_found(code: str) -> None:
    assert list(reaches(ast.parse(code)))


def public(path: Path) -> Iterator[str]:
    """Functions and classes of a module of the bridge that others may use."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{path.stem}.{node.name}"


def test_the_page_has_a_row_for_each_function_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+\.\w+)` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for name, _ in rows]
    assert sorted(names) == sorted(name for path in BRIDGE.glob("*.py") for name in public(path))
    assert [name for name, cells in rows if len([cell for cell in cells.split("|") if cell.strip()]) != 4] == []
