"""Which files a source has (AL-7 to AL-12; cases D06, D07, D09, D18)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.autoloader.discovery.files import LocalFiles
from lakelet.autoloader.discovery.listing import Filters, list_files
from lakelet.autoloader.discovery.path_patterns import PathPattern, fixed_folder, name_pattern
from lakelet.base.errors import LakeletError
from tests.globs import GLOBS

TABLE = [
    *GLOBS,
    ("/a/{x,y{1,2}}/f", "/a/y2/f", True, True),
    ("/a/{x,y{1,2}}/f", "/a/y3/f", False, False),
    ("/a/[b-d]?/", "/a/cx/f", True, True),
    ("/a/[^b-d]?/", "/a/cx/f", False, False),
    ("/a/?/f", "/a/b/c/f", False, False),
]


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., list[str]]:
    """Make files, then list a source: `tree("x", "d/y", path="*", strict=True)` → the found files below the folder."""

    def listed(*names: str, path: str = "", **filters: object) -> list[str]:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        found = list_files(f"{tmp_path}/{path}", Filters(**filters)).table  # type: ignore[arg-type]
        return [name.removeprefix(f"{tmp_path}/") for name in found["path"].to_pylist()]

    return listed


@pytest.mark.parametrize(("pattern", "file", "lenient", "strict"), TABLE)
@pytest.mark.parametrize("strict_glob", [False, True])
def test_d09_patterns_take_the_files_of_the_table(
    tree: Callable[..., list[str]], pattern: str, file: str, lenient: bool, strict: bool, strict_glob: bool
) -> None:
    expected = [file[1:]] if (strict if strict_glob else lenient) else []
    assert tree(file[1:], path=pattern[1:], strict_glob=strict_glob) == expected


@pytest.mark.parametrize(("pattern", "file", "lenient", "strict"), TABLE)
def test_every_folder_above_a_taken_file_may_hold_it(pattern: str, file: str, lenient: bool, strict: bool) -> None:
    for strict_glob, taken in ((False, lenient), (True, strict)):
        found = PathPattern(pattern, strict=strict_glob)
        above = [str(p) for p in Path(file).parents if str(p).startswith(fixed_folder(pattern))]
        assert not taken or all(found.may_hold(folder) for folder in above)


def test_only_folders_that_can_match_are_entered(tree: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    scan = LocalFiles.scan
    monkeypatch.setattr(LocalFiles, "scan", lambda self, path: (entered.append(os.path.basename(path)), scan(self, path))[1])
    names = ("y=1/m=1/d=1/f", "y=1/m=2/d=1/f", "y=2/m=1/d=1/f", "other/f")
    assert tree(*names, path="y=1/m={2,3}/*", strict_glob=True) == ["y=1/m=2/d=1/f"]
    assert entered == ["y=1", "m=2", "d=1"]
    entered.clear()
    assert tree(path="[y]=[2-9]/*") == ["y=2/m=1/d=1/f"]
    assert entered[1:] == ["y=2", "m=1", "d=1"]


def test_d06_hidden_files_and_folders_are_left_out_at_any_depth(tree: Callable[..., list[str]]) -> None:
    names = (
        "x.json",
        "_y.json",
        ".z.json",
        "_d/q.json",
        ".d/q.json",
        "w.json.tmp",
        "g.json.gz",
        "sub/n.json",
        "sub/_r/deep/n.json",
        "e.json",
    )
    visible = ["e.json", "g.json.gz", "sub/n.json", "w.json.tmp", "x.json"]
    assert sorted(tree(*names)) == visible
    assert sorted(tree("_k=1/p.json", "_k=1/_h/p.json", ".k=1/p.json")) == sorted([*visible, "_k=1/p.json"])
    assert "_y.json" in tree(hidden_segments="^[.]")
    assert "sub/n.json" not in tree(hidden_segments="^sub")


def test_a_custom_expression_also_hides_folders_named_like_columns(tree: Callable[..., list[str]]) -> None:
    assert tree("a/f", "_tmp=1/f", hidden_segments="^_tmp") == ["a/f"]


def test_the_folders_above_the_source_may_have_any_name(tree: Callable[..., list[str]]) -> None:
    assert tree("_landing/.in/a.json", path="_landing/.in") == ["_landing/.in/a.json"]


def test_d07_the_name_filter_looks_at_the_name_only(tree: Callable[..., list[str]]) -> None:
    assert tree("x.json", "y.csv", "d.json/z.csv", name_glob="*.json") == ["x.json"]
    assert sorted(tree(name_glob="[^x].{csv,js{on,}}")) == ["d.json/z.csv", "y.csv"]
    assert name_pattern("a+b.?").fullmatch("a+b.c")
    with pytest.raises(LakeletError, match="CF_INVALID_OPTION_VALUE"):
        tree(name_glob="[z-a]")


def test_d18_modification_times_are_compared_strictly(tree: Callable[..., list[str]], tmp_path: Path) -> None:
    tree("a", "b", "c")
    for name, seconds in (("c", 1), ("b", 2), ("a", 3)):
        os.utime(tmp_path / name, (seconds, seconds))
    assert tree() == ["c", "b", "a"]  # by time, then name
    assert tree(modified_after=1_000_000) == ["b", "a"]
    assert tree(modified_before=3_000_000) == ["c", "b"]


def test_a_single_file_is_a_source_of_a_batch_read_only(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(LakeletError, match="CF_PATH_IS_NOT_A_DIRECTORY") as caught:
        list_files(str(tmp_path / "a.json"), Filters())
    assert str(tmp_path) in caught.value.todo
    found = list_files(str(tmp_path / "a.json"), Filters(), file_allowed=True).table
    assert found["path"].to_pylist() == [str(tmp_path / "a.json")]
    assert found["size"].to_pylist() == [2]


def test_a_missing_folder_has_no_files_and_a_delta_table_is_refused(tree: Callable[..., list[str]]) -> None:
    assert tree(path="absent") == []
    assert tree(path="absent/*/x") == []
    with pytest.raises(LakeletError, match="CF_USE_DELTA_FORMAT"):
        tree("t/_delta_log/0.json", "t/part.parquet", path="t")


def test_a_folder_whose_name_has_wildcards_is_read_as_it_is(tree: Callable[..., list[str]]) -> None:
    assert tree("in[1]/a", "in1/b", path="in[1]") == ["in[1]/a"]


def test_links_in_a_circle_end_and_links_elsewhere_are_followed(tree: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in/up").symlink_to(tmp_path)
    (tmp_path / "in/sub/self").symlink_to(tmp_path / "in/sub")
    (tmp_path / "in/nowhere").symlink_to(tmp_path / "absent")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in/loop")
    (tmp_path / "in/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "in/pipe")
    assert sorted(tree("in/a", "in/sub/b", "elsewhere/c", path="in")) == ["in/a", "in/link/c", "in/sub/b"]


def test_a_folder_that_vanishes_while_it_is_listed_is_not_an_error(
    tree: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scan = LocalFiles.scan

    def removing(self: LocalFiles, path: str):  # type: ignore[no-untyped-def]
        if path.endswith("gone"):
            os.unlink(tmp_path / "gone/f")
            os.rmdir(path)
        return scan(self, path)

    monkeypatch.setattr(LocalFiles, "scan", removing)
    assert tree("a/f", "gone/f") == ["a/f"]


def test_names_that_are_not_utf8_are_refused_by_name(tree: Callable[..., list[str]], tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.json", "w"):
        pass
    with pytest.raises(LakeletError, match="not UTF-8"):
        tree("a.json")
    assert tree(name_glob="a*") == ["a.json"]
