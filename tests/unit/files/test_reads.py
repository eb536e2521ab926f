"""What code reads while it is watched is noted before it is read; what cannot be noted is a stale reason (IF-4, IF-5)."""

from __future__ import annotations

import builtins
import importlib
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from lakelet.base.patching import Patch, patched_with
from lakelet.files import signatures
from lakelet.files.reads import Access, Reads, note_path, note_stale_reason

PROBE = """
import json, sys
from lakelet.files.reads import Reads
reads = Reads((sys.argv[2],))
source = open(sys.argv[1]).read()
with reads.watching():
    exec(compile(source, sys.argv[1], "exec"), {"__name__": "user"})
print(json.dumps([[[a, p] for a, p in reads.found], reads.stale_reasons]))
"""


def watched(folder: Path, code: str) -> tuple[set[tuple[str, str]], list[str]]:
    """Run user code in a process of its own; return what was noted below its folder, and the stale reasons."""
    import json

    file = folder / "user.py"
    file.write_text(textwrap.dedent(code))
    command = [sys.executable, "-c", PROBE, str(file), str(folder / "own")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found, reasons = json.loads(done.stdout.splitlines()[-1])
    return {(access, os.path.relpath(path, folder)) for access, path in found if path.startswith(str(folder))}, reasons


def test_files_and_folders_that_code_reads_are_noted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("a")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("X = 1")
    found, reasons = watched(
        tmp_path,
        """
        import glob, os, pathlib, sys
        sys.path.insert(0, os.getcwd() + "/lib")
        import helper
        open("data/a.txt").close()
        pathlib.Path("data/a.txt").read_text()
        try:
            open("missing.txt")
        except FileNotFoundError:
            pass
        os.listdir("data")
        list(os.walk("."))
        glob.glob("one/literal.txt")
        os.path.exists("asked/one")
        os.path.isfile("asked/two")
        pathlib.Path("asked/three").is_dir()
        pathlib.Path("asked/four").exists()
        pathlib.Path("asked/five").is_file()
        pathlib.Path("asked/six").is_symlink()
        os.path.getsize("data/a.txt")
        pathlib.Path("link").resolve()
        """,
    )
    assert reasons == []
    expected = {("file", "data/a.txt"), ("file", "missing.txt"), ("entries", "data"), ("entries", "."), ("file", "one/literal.txt")}
    expected |= {("file", f"asked/{name}") for name in ("one", "two", "three", "four", "five", "six")} | {("file", "link")}
    assert expected | {("file", "lib/helper.py"), ("names", "lib")} <= found


@pytest.mark.parametrize(
    "code",
    [
        "open('out.txt', 'w').close()",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.system('true')",
        "import socket\nsocket.socket().connect_ex(('127.0.0.1', 9))",
        "import sqlite3\nsqlite3.connect(':memory:')",
        "import os\nos.mkdir('new')",
        "print('hello')",
        "import sys\nsys.stderr.write('hello')",
        "import sys\nsys.stdout.writelines(['hello', chr(10)])",
        "import sys\nsys.stdout.buffer.write(b'hello' + bytes([10]))",
        "import os\nos.makedirs('own')\nopen('own/file', 'a').close()",
        "import os\nos.path.getmtime('.')",
        "import pathlib\npathlib.Path('.').stat()",
        "import os\nos.stat('user.py', dir_fd=os.open('.', 0))",
        "open('/proc/self/status').read()",
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://127.0.0.1:9')\nexcept OSError:\n    pass",
    ],
)
def test_what_cannot_be_compared_is_a_stale_reason_with_its_line(tmp_path: Path, code: str) -> None:
    _, reasons = watched(tmp_path, code)
    assert reasons
    assert any("user.py:" in reason or "prints" in reason for reason in reasons)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no shared memory with files")
def test_files_in_shared_memory_are_files() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        (Path(folder) / "a.txt").write_text("a")
        assert watched(Path(folder), "open('a.txt').close()") == ({("file", "a.txt")}, [])


def test_python_may_compile_the_modules_that_code_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "helper.py").write_text("X = 1")
    found, reasons = watched(tmp_path, "import sys\nsys.path.insert(0, '.')\nimport helper\n")
    assert reasons == []
    assert ("file", "helper.py") in found
    assert list((tmp_path / "__pycache__").glob("helper.*.pyc"))


def test_a_file_has_the_signature_of_the_moment_before_it_was_read_first(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    before = signatures.of_file(str(file))
    reads = Reads()
    with reads.watching() as end:
        file.read_text()
        file.write_bytes(b"changed")
        file.read_text()
        note_path(tmp_path / "absent")
        note_stale_reason("look")
        end()
        (tmp_path / "later").mkdir()
        note_stale_reason("after the end")
    assert reads.found[Access.FILE, str(file)] == before != signatures.of_file(str(file))
    assert reads.found[Access.FILE, str(tmp_path / "absent")] == signatures.ABSENT
    assert "look" in reads.stale_reasons
    assert "after the end" not in reads.stale_reasons
    assert sys.stdout is not None
    assert not hasattr(sys.stdout, "_reads")


def test_the_end_of_the_watch_keeps_a_function_that_was_replaced_meanwhile() -> None:
    """An update goes on after the watch has ended, and its code still needs the map of paths."""
    before = os.stat

    def mapped(path: str) -> os.stat_result:
        return before(path)

    with Reads().watching() as end, patched_with((Patch("os", "stat", lambda original, _: mapped, "a map of paths", "3.10"),)):
        end()
        assert os.stat is mapped
    assert os.stat is before


def test_pythons_functions_are_replaced_while_reads_are_watched_and_no_longer() -> None:
    functions = (os.stat, os.lstat, os.listdir, os.scandir, builtins.open)
    with Reads().watching() as end:
        assert os.stat is not functions[0]
        assert (os.listdir, os.scandir, builtins.open) == functions[2:]
        end()
        assert (os.stat, os.lstat, os.listdir, os.scandir, builtins.open) == functions


def test_what_code_reads_in_threads_of_its_own_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    found, reasons = watched(
        tmp_path,
        """
        import os
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(os.path.exists, ["one", "two"]))
            threads.submit(open, "a.txt").result().close()
            threads.submit(os.listdir, ".").result()
        """,
    )
    assert reasons == []
    assert {("file", "one"), ("file", "two"), ("file", "a.txt"), ("entries", ".")} <= found


def test_the_folder_in_which_spark_puts_added_files_is_passed_by_when_python_looks_for_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies on Python's path, is another one in each process, and code that reads a file in it is seen."""
    added = tmp_path / "process" / "added"
    added.mkdir(parents=True)
    (added / "a.txt").write_text("a")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "found_after_it.py").write_text("X = 1")
    monkeypatch.setattr(sys, "path", [str(added), str(tmp_path / "modules"), *sys.path])
    reads = Reads((), (str(tmp_path / "process"),))
    with reads.watching():
        importlib.import_module("found_after_it")
        (added / "a.txt").read_text()
    seen = {(str(kind), path.removeprefix(str(tmp_path))) for kind, path in reads.found if path.startswith(str(tmp_path))}
    assert seen == {("names", "/modules"), ("file", "/modules/found_after_it.py"), ("file", "/process/added/a.txt")}
