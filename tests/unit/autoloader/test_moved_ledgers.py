"""Ledgers whose files were moved: paths are those of now, whatever was written when (docs/semantics/sources.md, SO-9)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.autoloader.discovery.listing import LISTING
from lakelet.autoloader.state.file_states import states
from lakelet.autoloader.state.ledger import Archive, Ledger, same_names
from lakelet.autoloader.state.source_moves import SameNames, SourceReads, note, noted
from lakelet.base.errors import LakeletError
from lakelet.files.moves import Folder, Move


def listing(*paths: str, size: int = 1) -> pa.Table:
    return pa.table([list(paths), [size] * len(paths), [7] * len(paths)], schema=LISTING)


def moved(state: Path, *moves: Move) -> Ledger:
    note(str(state), SourceReads("/x", "", Folder("/x"), moves))
    return Ledger(str(state))


def known(ledger: Ledger) -> list[str]:
    return [path for piece in ledger.entries(1 << 62) for path in piece["path"].to_pylist()]


def test_each_file_of_a_ledger_makes_the_moves_that_came_after_it(tmp_path: Path) -> None:
    one, two, three = ("/p", "/p/p"), ("/p/p", "/é b"), ("/é b/in", "/é b/out")
    Ledger(str(tmp_path)).plan(0, listing("/p/in/1", "/pp/in/1"))
    ledger = moved(tmp_path, one)
    assert known(ledger) == ["/p/p/in/1", "/pp/in/1"]
    ledger.plan(1, listing("/p/p/in/2"))
    ledger = moved(tmp_path, one, two)
    ledger.plan(2, listing("/p/p/in/3"))  # another file, where a folder of the old name was made again
    assert known(ledger) == ["/é b/in/1", "/pp/in/1", "/é b/in/2", "/p/p/in/3"]
    assert ledger.unseen(listing("/é b/in/1", "/é b/in/2", "/p/in/1", "/p/p/in/3"), 2)["path"].to_pylist() == ["/p/in/1"]
    ledger._compact_batches(1)
    assert sorted(known(Ledger(str(tmp_path)))) == sorted(["/é b/in/1", "/pp/in/1", "/é b/in/2", "/p/p/in/3"])
    ledger = moved(tmp_path, one, two, three)
    assert sorted(known(ledger)) == sorted(["/é b/out/1", "/pp/in/1", "/é b/out/2", "/p/p/in/3"])
    assert ledger.planned(0, 1)["path"].to_pylist() == ["/é b/out/2"]


def test_a_ledger_can_be_looked_at_as_though_its_files_were_moved(tmp_path: Path) -> None:
    Ledger(str(tmp_path)).plan(0, listing("/p/1", "/p/2"))
    assert known(Ledger(str(tmp_path), moves=[("/p", "/q")])) == ["/q/1", "/q/2"]
    assert known(Ledger(str(tmp_path))) == ["/p/1", "/p/2"]


def test_what_was_archived_is_found_under_the_new_path(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("/p/1"))
    Archive(ledger).add([("/p/1", "MOVE", 5, "file:/p/done/1")])
    moved(tmp_path, ("/p", "/q"))
    (state,) = states(str(tmp_path), '{"v": 1, "batch": 0}').to_pylist()
    assert (state["path"], state["archive_mode"], state["move_location"]) == ("file:/q/1", "MOVE", "file:/p/done/1")


def test_files_of_the_same_relative_paths_are_counted(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("/p/1", "/p/a/2", "/other/3"))
    ledger.plan(1, listing("/p/4", size=9))
    found = listing("/q/1", "/q/a/2", "/q/2", "/q/4", "/q/3", "/p/1")
    assert same_names(ledger, found, "/p", "/q") == SameNames(known=3, there=3, sized=2)
    assert same_names(ledger, found, "/nothing", "/q") == SameNames(0, 0, 0)


@pytest.mark.parametrize(
    ("content", "code"), [('["/p", ""]', "CF_STATE_DAMAGED"), ("{", "CF_STATE_DAMAGED"), (json.dumps({"format": 3}), "FORMAT_UNKNOWN")]
)
def test_a_note_of_another_format_is_refused(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "reads").write_text(content)
    with pytest.raises(LakeletError) as caught:
        noted(str(tmp_path))
    assert caught.value.code == code
