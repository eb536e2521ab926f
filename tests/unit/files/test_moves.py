"""What became of a folder that a stream reads (docs/semantics/sources.md, SO-9 to SO-11)."""

from __future__ import annotations

import pytest

from lakelet.files.moves import Folder, Relocation, relocation, replaced
from lakelet.files.remote import path_in_store, store_name

STAYS, ELSEWHERE = Relocation(), Relocation(elsewhere=True)


def folder(path: str, project: str = "/w/p", store: str = "", name: str = "", storage: str = "") -> Folder:
    return Folder(path, store, name, {"project": project, "storage": storage or f"{project}/.lakelet"})


CASES = {
    "nothing changed": (folder("/w/p/in"), folder("/w/p/in"), STAYS),
    "the project was renamed": (folder("/w/p/in"), folder("/w/q/in", "/w/q"), Relocation(("/w/p", "/w/q"))),
    "into its own old path": (folder("/w/p/in"), folder("/w/p/p/in", "/w/p/p"), Relocation(("/w/p", "/w/p/p"))),
    "out of it": (folder("/w/p/p/in", "/w/p/p"), folder("/w/p/in"), Relocation(("/w/p/p", "/w/p"))),
    "and the pattern made wider": (folder("/w/p/in/a"), folder("/w/q/in", "/w/q"), Relocation(("/w/p", "/w/q"))),
    "the project itself is read": (folder("/w/p"), folder("/w/q", "/w/q"), Relocation(("/w/p", "/w/q"))),
    "a name that begins alike": (folder("/w/p2/in"), folder("/w/q2/in", "/w/q"), ELSEWHERE),
    "a copy that reads the original's folder": (folder("/w/p/in"), folder("/w/p/in", "/w/q"), STAYS),
    "only the storage was moved": (folder("/w/p/in"), folder("/w/p/in", storage="/s"), STAYS),
    "a folder in the storage": (folder("/w/p/.lakelet/in"), folder("/s/in", storage="/s"), Relocation(("/w/p/.lakelet", "/s"))),
    "a folder beside the project": (folder("/w/in"), folder("/v/in", "/v/p"), Relocation(("/w/in", "/v/in"), likely=True)),
    "another folder": (folder("/w/p/in"), folder("/data/in"), ELSEWHERE),
    "another folder of the project": (folder("/w/p/in"), folder("/w/p/out"), ELSEWHERE),
    "the project was renamed and another folder is read": (folder("/w/p/in"), folder("/w/q/out", "/w/q"), ELSEWHERE),
    "a narrower pattern": (folder("/w/p/in"), folder("/w/p/in/2024"), STAYS),
    "a wider pattern": (folder("/w/p/in/2024"), folder("/w/p"), STAYS),
    "the same bucket": (folder("b/in", store="s3a"), folder("b/in", "/w/q", "s3a"), STAYS),
    "another bucket": (folder("b/in", store="s3a"), folder("c/in", store="s3a"), ELSEWHERE),
    "the same path in another kind of store": (folder("b/in", store="s3a"), folder("b/in", store="gs"), ELSEWHERE),
    "a mapped name leads elsewhere": (
        folder("/w/d1/raw", name="/Volumes/raw"),
        folder("/w/d2/raw", name="/Volumes/raw"),
        Relocation(("/w/d1/raw", "/w/d2/raw")),
    ),
    "a mapped name leads to a store": (
        folder("/w/d1/x/in", name="/Volumes/raw/in"),
        folder("b/in", store="s3a", name="/Volumes/raw/in"),
        Relocation(("/w/d1/x/in", "b/in")),
    ),
    "and a folder above it is read": (
        folder("/w/d1/x/in", name="/Volumes/raw/in"),
        folder("/w/d2/x", name="/Volumes/raw"),
        Relocation(("/w/d1/x", "/w/d2/x")),
    ),
    "another mapped name": (folder("/w/d1", name="/Volumes/a"), folder("/w/d2", name="/Volumes/b"), ELSEWHERE),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_folder_is_known_by_where_it_lies_as_seen_from_the_project(case: tuple[Folder, Folder, Relocation]) -> None:
    before, now, wanted = case
    assert relocation(before, now) == wanted


@pytest.mark.parametrize(
    ("told", "before", "now", "wanted"),
    [
        (("/data", "/archive"), "/data/in", "/archive/in", Relocation(("/data", "/archive"))),
        (("/data/in", "b/in"), "/data/in", "b/in", Relocation(("/data/in", "b/in"))),
        (("/data/in/a", "/data/in/b"), "/data/in", "/data/in", Relocation(("/data/in/a", "/data/in/b"))),
        (("/data", "/archive"), "/data/in", "/data/in", STAYS),  # it is still read where it was
        (("/data", "/archive"), "/other/in", "/archive/in", ELSEWHERE),
        (("/data", "/archive"), "/data/in", "/archive/out", ELSEWHERE),
    ],
)
def test_what_the_user_says_was_moved_counts_where_it_fits(told: tuple[str, str], before: str, now: str, wanted: Relocation) -> None:
    stores = ["" if path.startswith("/") else "s3a" for path in (before, now)]
    assert relocation(folder(before, store=stores[0]), folder(now, store=stores[1]), [told]) == wanted


@pytest.mark.parametrize(
    ("location", "store"),
    [
        ("/w/in", ""),
        ("file:///w/in", ""),
        ("s3://bucket/in", "s3a"),
        ("abfs://box@account.dfs.core.windows.net/in", "abfs://account"),
        ("abfss://box@account.blob.core.windows.net/in", "abfs://account"),
        ("abfss://box@other.dfs.core.windows.net/in", "abfs://other"),
        ("hdfs://host:8020/in", "hdfs://host:8020"),
        ("hdfs:///in", "hdfs"),
        ("odd://where/in", "odd"),
    ],
)
def test_containers_of_two_accounts_and_folders_of_two_name_nodes_are_in_two_stores(location: str, store: str) -> None:
    assert store_name(location) == store


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/w/p/../in/", "/w/in"),
        ("file:///w/a%20b", "/w/a b"),
        ("file:/w/in", "/w/in"),
        ("s3a://bucket/in//deep/", "bucket/in/deep"),
        ("s3a://bucket", "bucket"),
        ("abfss://box@account.dfs.core.windows.net/in", "box/in"),
        ("hdfs://host:8020/in", "/in"),
        ("hdfs:///in", "/in"),
        ("odd://where/in", "where/in"),
    ],
)
def test_a_path_in_a_store_is_known_without_asking_it(location: str, path: str) -> None:
    assert path_in_store(location) == path


def test_moves_are_made_in_their_order() -> None:
    moves = [("/w/p", "/w/p/p"), ("/w/p/p", "/v"), ("/v/x", "/v/y")]
    assert [replaced(path, moves) for path in ("/w/p/x/1", "/w/p", "/w/pp/x", "/v/x")] == ["/v/y/1", "/v", "/w/pp/x", "/v/y"]
