"""What Lakelet replaces in pyspark and Delta: the table is right for the installed versions, and nothing stays replaced."""

from __future__ import annotations

import ast
import inspect
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.autoloader import standalone
from lakelet.autoloader.standalone import STAND_ALONE, opened
from lakelet.base import patching
from lakelet.base.errors import LakeletError
from lakelet.base.patching import Patch, patched_with, put_on, without_context
from lakelet.spark.patches.all_patches import SETS
from lakelet.spark.patches.function_exports import COLUMNS_WITHOUT_JAVA
from lakelet.spark.patches.update_context import only_pipeline

SOURCES = Path(lakelet.__file__).parent
ADDED = re.compile(r"versionadded:: *([\d.]+)")


def stored(patch: Patch) -> Any:
    """What the owner itself has under the name; None where it has nothing."""
    return vars(patch.owned_by()).get(patch.name)


def attributes(patches: tuple[Patch, ...]) -> dict[str, Any]:
    return {str(patch): stored(patch) for patch in patches}


# ----------------------------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize("name", SETS)
def test_every_attribute_exists_in_the_installed_version(name: str) -> None:
    assert [str(patch) for patch in SETS[name] if not patch.optional and not hasattr(patch.owned_by(), patch.name)] == []


def test_the_versions_are_those_of_the_documentation_of_pyspark_and_delta() -> None:
    rows = {str(patch): patch for patches in SETS.values() for patch in patches if patches is not COLUMNS_WITHOUT_JAVA}
    documented = {name: found[1] for name, patch in rows.items() if (found := ADDED.search(documentation(patch)))}
    assert {name: rows[name].since for name in documented} == documented
    assert len(documented) >= 80


def documentation(patch: Patch) -> str:
    owner = patch.owned_by()
    classes = inspect.getmro(owner) if inspect.isclass(owner) else (owner,)
    texts = [getattr(vars(one).get(patch.name), "__doc__", None) for one in classes]
    return next((text for text in texts if text and "versionadded" in text), "")


@pytest.mark.parametrize("name", SETS)
def test_a_set_replaces_every_attribute_and_puts_the_same_objects_back(name: str) -> None:
    before = attributes(SETS[name])
    with patched_with(SETS[name], object()):
        during = attributes(SETS[name])
    assert {attribute for attribute in before if during[attribute] is before[attribute]} == set()
    assert_same(before, SETS[name])


@pytest.mark.parametrize("name", SETS)
def test_an_exception_inside_the_block_puts_the_same_objects_back(name: str) -> None:
    before = attributes(SETS[name])
    with pytest.raises(ZeroDivisionError), patched_with(SETS[name], object()):
        raise ZeroDivisionError
    assert_same(before, SETS[name])


@pytest.mark.parametrize("name", SETS)
def test_an_exception_in_any_step_puts_back_what_the_steps_before_it_replaced(name: str) -> None:
    patches = SETS[name]
    before = attributes(patches)

    def failing(*_: object) -> Any:
        raise ZeroDivisionError

    for step in range(0, len(patches), 1 if len(patches) < 200 else 50):  # the set of init's process has a row for each function
        with pytest.raises(ZeroDivisionError):
            put_on((*patches[:step], replace(patches[step], make=failing), *patches[step + 1 :]), object())
        assert_same(before, patches)


def assert_same(before: Mapping[str, Any], patches: tuple[Patch, ...]) -> None:
    after = attributes(patches)
    assert [name for name in before if after[name] is not before[name]] == []
    assert patching._sets == []
    assert patching._originals == {}


# ------------------------------------------------------------------------------------------------------- the mechanism


class Plain:
    def word(self) -> str:
        return "plain"

    @classmethod
    def kind(cls) -> str:
        return cls.__name__


class Inheriting(Plain):
    pass


@pytest.fixture
def nothing_left() -> Iterator[None]:
    yield
    assert (Plain().word(), Plain.kind(), vars(Inheriting).get("word")) == ("plain", "Plain", None)


def said(text: str, name: str = "word", owner: str = "Plain") -> tuple[Patch, ...]:
    def make(original: Any, context: Any) -> Any:
        return lambda self: f"{text}{context or ''}({original(self)})"

    return (Patch(f"{__name__}.{owner}", name, make, "a test", "1"),)


@pytest.mark.usefixtures("nothing_left")
def test_a_later_patch_of_the_same_attribute_calls_the_earlier_one() -> None:
    with patched_with(said("first"), 7), patched_with(said("second"), 7):
        assert Plain().word() == "second7(first7(plain))"
        assert Plain.word.__name__ == "word"


@pytest.mark.usefixtures("nothing_left")
def test_a_class_method_stays_one() -> None:
    with patched_with(said("seen", "kind")):
        assert Inheriting.kind() == "seen(Inheriting)"


@pytest.mark.usefixtures("nothing_left")
def test_an_inherited_attribute_is_taken_off_the_class_that_inherits_it() -> None:
    with patched_with(said("own", owner="Inheriting")):
        assert (Inheriting().word(), Plain().word()) == ("own(plain)", "plain")


@pytest.mark.usefixtures("nothing_left")
def test_a_set_that_is_taken_off_under_another_one_leaves_the_other_one() -> None:
    lower, upper = put_on(said("lower")), put_on(said("upper"))
    lower.take_off()
    assert Plain().word() == "upper(plain)"
    upper.take_off()
    upper.take_off()
    assert not upper.is_on


@pytest.mark.usefixtures("nothing_left")
def test_a_set_that_is_put_on_inside_a_block_ends_with_it() -> None:
    with patched_with(said("outer")):
        inner = put_on(said("inner"))
    assert not inner.is_on


@pytest.mark.usefixtures("nothing_left")
def test_a_set_replaces_an_attribute_once() -> None:
    with pytest.raises(ValueError, match=r"a set replaces .*Plain\.word twice"), patched_with((*said("first"), *said("second"))):
        pass


def test_a_missing_attribute_is_named() -> None:
    with pytest.raises(AttributeError, match=r"Plain has no attribute wrod"):
        put_on(said("x", "wrod"))
    with pytest.raises(ImportError, match=r"no_such_package"):
        put_on((Patch("no_such_package.Thing", "x", without_context(str), "", ""),))


def test_the_stop_of_an_application_takes_auto_loader_off() -> None:
    before = attributes(STAND_ALONE)
    registrations = [opened(), opened()]
    assert attributes(STAND_ALONE).items() & before.items() == set()
    stopped: list[str] = []
    standalone._stop(stopped.append)("context")  # what SparkContext.stop is while a registration is open
    assert stopped == ["context"]
    assert_same(before, STAND_ALONE)
    for registration in registrations:
        registration.close()


def test_another_thread_is_refused_and_a_nested_block_only_where_it_says_so() -> None:
    found: list[str] = []

    def other() -> None:
        try:
            with only_pipeline(nested=True):
                found.append("in")
        except LakeletError as error:
            found.append(error.code)

    with only_pipeline():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with only_pipeline(nested=True):
            pass
        with pytest.raises(LakeletError, match="PROCESS_BUSY"), only_pipeline():
            pass
    with only_pipeline():
        pass
    assert found == ["PROCESS_BUSY"]


# --------------------------------------------------------------------------------------------------- the only one room

FOREIGN = ("pyspark", "delta", "py4j", "builtins")


def test_nothing_but_the_mechanism_assigns_to_attributes_of_pyspark() -> None:
    found = {
        f"{file.relative_to(SOURCES)}: {line}"
        for file in sorted(SOURCES.rglob("*.py"))
        for line in assignments(ast.parse(file.read_text()))
        if file.name != "patching.py"
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        "from pyspark.sql import DataFrame\nDataFrame.collect = None",
        "def f():\n    from pyspark.sql import DataFrame as D\n    D.collect: object = None",
        "import pyspark.sql.functions as F\nF.col, x = 1, 2",
        "import pyspark\npyspark.sql.DataFrame.count += 1",
        "from delta.tables import DeltaTable\ndel DeltaTable.forName",
        "import builtins\nbuiltins.spark = None",
        "from pyspark.sql import DataFrame\nwith open('x') as DataFrame.collect: pass",
        "from py4j.java_gateway import JavaObject\nsetattr(JavaObject, 'x', 1)",
        "def f(owner):\n    setattr(owner, 'x', 1)",
        "def f(owner):\n    owner.__class__ = int",
        "from unittest.mock import patch",
        "import pyspark\nvars(pyspark)['pipelines'] = 1",
        "import pyspark\npyspark.__dict__.update(x=1)",
    ],
)
def test_a_new_place_would_be_found(code: str) -> None:
    assert assignments(ast.parse(code))


def assignments(tree: ast.Module) -> list[str]:
    """Statements of a module that assign to attributes of pyspark's classes and modules, or could do so without naming them."""
    foreign = {name for node in ast.walk(tree) for name in imported(node)}
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = [node for node in ast.walk(tree) if replaces(node, foreign, own)]
    return [f"{node.lineno}: {ast.unparse(node).splitlines()[0]}" for node in found]  # type: ignore[attr-defined]


def imported(node: ast.AST) -> list[str]:
    """Names that an import binds to something of pyspark, Delta, py4j or builtins."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in FOREIGN:
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name.partition(".")[0] in FOREIGN]
    return []


def replaces(node: ast.AST, foreign: set[str], own: set[str]) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return root(node) in foreign or node.attr == "__class__"
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return namespace_of(node.value) in foreign
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith("unittest")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return root(node.args[0]) not in own | FUNCTIONS_AND_SELF
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and namespace_of(node.func.value) in foreign


FUNCTIONS_AND_SELF = {"self", "call", "found", "waiting"}
"""Names that setattr() is called on in Lakelet's own code beside its classes: itself, and functions that user code decorates."""


def root(node: ast.AST) -> str | None:
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def namespace_of(node: ast.AST) -> str | None:
    """X of `vars(X)` and `X.__dict__`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
        return root(node.args[0])
    return root(node) if isinstance(node, ast.Attribute) and node.attr == "__dict__" else None
