"""Whose code called is decided by modules and whole folders: names that contain those of a library are the user's."""

from __future__ import annotations

import functools
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.raised import innermost_location
from lakelet.base.user_code import PACKAGE, caller_location, is_library


def calling(file: str, module: str = "__main__") -> Callable[..., Any]:
    """A function of a file and module that calls what it is given."""
    names: dict[str, Any] = {"__name__": module}
    exec(compile("def call(function):\n    return function()\n", file, "exec"), names)
    found: Callable[..., Any] = names["call"]
    return found


@pytest.mark.parametrize("file", ["/home/me/pyspark/p.py", "/home/me/my_functools.py", "/home/me/functools/p.py", "/home/me/lakelet/p.py"])
def test_a_file_is_the_users_whatever_its_name_contains(file: str) -> None:
    assert (caller := calling(file)(caller_location)).line == 2
    assert caller.file.endswith(file.rpartition("/")[2])


@pytest.mark.parametrize("module", ["pyspark", "pyspark.sql.session", "functools"])
def test_modules_that_call_for_others_are_passed_over(module: str) -> None:
    inner = functools.partial(calling("/spark/python/anything.py", module), caller_location)
    assert calling("/home/me/p.py")(inner).file.endswith("/p.py")


@pytest.mark.parametrize("module", ["pyspark_helpers", "functools_of_mine.pyspark", "functoolz"])
def test_a_module_whose_name_begins_like_one_of_those_is_the_users(module: str) -> None:
    assert calling("/home/me/helpers.py", module)(caller_location).file.endswith("/helpers.py")


@pytest.mark.parametrize(
    ("file", "library"),
    [
        (PACKAGE + "pipeline.py", True),
        (PACKAGE.rstrip("/") + "_of_mine/p.py", False),
        ("<string>", True),
        (str(Path(sysconfig.get_path("stdlib"), "json/decoder.py")), True),
        (str(Path(sysconfig.get_path("purelib"), "pyspark/sql/session.py")), True),
        ("/opt/venv/lib/python3.12/site-packages/x.py", True),
        ("/usr/lib/python3/dist-packages/x.py", True),
        ("/usr/lib/python3.13t/x.py", True),
        (r"C:\venv\Lib\site-packages\x.py", True),
        ("/home/me/site-packages-mirror/p.py", False),
        ("/home/me/my-site-packages/p.py", False),
        ("/home/me/lib/python3_jobs/p.py", False),
        ("/home/me/lib/python3.md/p.py", False),
    ],
)
def test_a_library_is_recognised_by_its_folder(file: str, library: bool) -> None:
    assert is_library(file) is library


def test_the_line_that_raised_is_the_innermost_one_of_user_code() -> None:
    with pytest.raises(ValueError, match="x") as caught:
        calling("/home/me/project_two/p.py")(lambda: calling("/home/me/project/p.py")(lambda: calling(PACKAGE + "p.py")(lambda: int("x"))))
    assert (found := innermost_location(caught.value)) is not None
    assert found.file.endswith("test_whose_code.py")
    with pytest.raises(TypeError) as caught_in_file:
        calling("/home/me/project/p.py")(None)
    assert (found := innermost_location(caught_in_file.value)) is not None
    assert found.file.endswith("project/p.py")
