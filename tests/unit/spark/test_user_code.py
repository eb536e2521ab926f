"""What user code raises is its own failure, whatever class it has: only Ctrl-C ends more."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.user_code import ControlSignal, EscapedException, call_user_code, original_error, user_code_runs
from lakelet.language.loader import loaded

ENDS: Mapping[str, str] = {
    "SystemExit": "sys.exit()",
    "SystemExit: 3": "sys.exit(3)",
    "SystemExit: that is all": "raise SystemExit('that is all')",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit: closed": "raise GeneratorExit('closed')",
    "CancelledError": "raise asyncio.CancelledError",
    "StopIteration": "next(iter(()))",
    "Odd: own class": "raise Odd('own class')",
}
IMPORTS = "import asyncio, sys\nclass Odd(BaseException): pass\n"
SOUND = "import dlt\n@dlt.table\ndef sound():\n    return None\n"


def function(code: str) -> Callable[[], Any]:
    """A function of a user's file."""
    names: dict[str, Any] = {}
    exec(compile(f"{IMPORTS}def f():\n    {code}\n", "/home/user/pipeline.py", "exec"), names)
    found: Callable[[], Any] = names["f"]
    return found


@pytest.mark.parametrize(("shown", "code"), ENDS.items())
def test_what_a_function_raises_is_an_exception_that_knows_its_original(shown: str, code: str) -> None:
    with pytest.raises((EscapedException, StopIteration)) as caught:
        call_user_code(function(code))
    assert type(original_error(caught.value)).__name__ == shown.partition(":")[0]


def test_a_function_gets_its_arguments_and_gives_its_result() -> None:
    assert call_user_code(lambda a, b: a - b, 5, 3) == 2


def test_the_outer_function_sees_an_exception_where_an_inner_one_exits() -> None:
    with pytest.raises(EscapedException) as caught:
        call_user_code(lambda: call_user_code(function("sys.exit('inner')")))
    assert repr(original_error(caught.value)) == "SystemExit('inner')"


def test_what_lakelet_sends_through_user_code_passes() -> None:
    def ask() -> None:
        raise ControlSignal

    with pytest.raises(ControlSignal):
        call_user_code(ask)


def test_ctrl_c_passes_also_where_the_function_cleans_up_and_goes_on_with_it() -> None:
    waiting = "__import__('os').kill(__import__('os').getpid(), 2); [i for i in range(10**7)]"
    cleaning = f"try: {waiting}\n    except KeyboardInterrupt:\n        raise"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for code in (waiting, cleaning):
            with pytest.raises(KeyboardInterrupt):
                call_user_code(function(code))
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nobody_sends_ctrl_c() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            call_user_code(function("signal = __import__('signal'); signal.default_int_handler(2, None)"))
        except BaseException as raised:
            found.append(raised)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [type(one) for one in found] == [EscapedException]


# ------------------------------------------------------------------------------------------------------- loading a file


def mistakes(*files: Path) -> list[LakeletError]:
    """The mistakes in the files; the last one is sound, so it must have been loaded all the same."""
    with loaded(files, import_roots=[files[0].parent], namespace=Namespace(), injected={"spark": None}) as found:
        assert [d.name.name for d in found.definitions.datasets] == ["sound"]
        return list(found.errors)


def test_a_file_that_ends_early_fails_by_name_and_the_others_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = []
    for number, code in enumerate(ENDS.values()):
        files.append(tmp_path / f"file{number}.py")
        files[-1].write_text(f"{IMPORTS}{code}\n")
    (tmp_path / "sound.py").write_text(SOUND)
    found = mistakes(*files, tmp_path / "sound.py")
    assert [(e.code, e.what, e.where and (e.where.file, e.where.line)) for e in found] == [
        ("SOURCE_FAILED", f"loading the file failed: {shown}", (f"file{number}.py", 3)) for number, shown in enumerate(ENDS)
    ]


def test_a_helper_module_that_exits_is_the_mistake_of_the_line_that_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit('no licence')\n")
    (tmp_path / "reads.py").write_text("import leaving\n")
    (tmp_path / "sound.py").write_text(SOUND)
    (found,) = mistakes(tmp_path / "reads.py", tmp_path / "sound.py")
    assert found.what == "loading the file failed: SystemExit: no licence"
    assert found.where is not None
    assert (found.where.file, found.where.excerpt()[0]) == ("leaving.py", "2 | sys.exit('no licence')")


@pytest.mark.parametrize("code", ["import sys; sys.exit()", "import asyncio\nraise asyncio.CancelledError", "await forever()"])
def test_a_notebook_that_ends_early_fails_by_name(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    forever = "import asyncio\nasync def forever():\n    asyncio.current_task().cancel()\n    await asyncio.sleep(9)\n"
    cells = [{"cell_type": "code", "metadata": {}, "source": [text]} for text in (forever, code)]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}))
    (tmp_path / "sound.py").write_text(SOUND)
    (found,) = mistakes(tmp_path / "book.ipynb", tmp_path / "sound.py")
    assert (found.code, found.what.rpartition(": ")[2]) == ("SOURCE_FAILED", "SystemExit" if "exit" in code else "CancelledError")


def test_dbutils_notebook_exit_still_ends_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "sound.py"
    file.write_text(SOUND + "dbutils.notebook.exit('done')\nraise KeyError\n")
    assert mistakes(file) == []


def test_user_code_runs_in_its_own_calls_and_thread_only() -> None:
    seen = []

    def fails() -> None:
        call_user_code(lambda: seen.append(user_code_runs()))
        seen.append(user_code_runs())
        beside = threading.Thread(target=lambda: seen.append(user_code_runs()))
        beside.start()
        beside.join()
        raise ValueError("of user code")

    with pytest.raises(ValueError, match="of user code"):
        call_user_code(fails)
    assert [*seen, user_code_runs()] == [True, True, False, False]
