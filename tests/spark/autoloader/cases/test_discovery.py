"""Cases D01–D18: which files are read, how often, in which batches, and what stays of them."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoloading import INFER, Boom, Program, both
from lakelet.base.errors import LakeletError
from tests.globs import GLOBS

from .conftest import Make

A, B = '{"id":1}\n', '{"id":2}\n'


def die() -> None:
    raise Boom("made by the test")


def test_D01_each_file_is_read_once(make: Make) -> None:
    one = make().put("a.json", A).run().run()
    assert one.rows("id") == ["1"]
    one.put("b.json", B).run()
    assert [[row["id"] for row in batch] for batch in one.batches] == [["1"], ["2"]]


def test_D02_an_overwritten_file_is_read_again_only_where_asked(make: Make) -> None:
    for options, expected in (({}, ["1"]), ({"cloudFiles.allowOverwrites": "true"}, ["1", "2", "3"])):
        one = make(options).put("a.json", A).run().put("a.json", '{"id":2}\n{"id":3}\n').run().run()
        assert one.rows("id") == expected


def test_D03_existing_files_are_left_out_from_the_first_start_on(make: Make) -> None:
    one = make({"cloudFiles.includeExistingFiles": "false"}, "id INT").put("a.json", A).run()
    assert one.rows() == []
    assert one.put("b.json", B).run().rows("id") == [2]
    one.options["cloudFiles.includeExistingFiles"] = "true"
    assert one.run().rows("id") == [2]


def test_D04_a_batch_takes_at_most_so_many_files(make: Make) -> None:
    one = make({"cloudFiles.maxFilesPerTrigger": "2"})
    for n in range(5):
        one.put(f"{n}.json", f'{{"id":{n}}}\n')
    one.run()
    assert [len(files) for files in one.files] == [2, 2, 1]
    assert one.rows("id") == ["0", "1", "2", "3", "4"]


def test_D05_a_batch_stops_at_the_file_that_crosses_the_size(make: Make) -> None:
    content = '{"id":"' + "x" * (300 - len('{"id":""}\n')) + '"}\n'
    assert len(content) == 300
    for limit, expected in (("1000b", [4]), ("500b", [2, 2])):
        one = make({"cloudFiles.maxBytesPerTrigger": limit})
        for n in range(4):
            one.put(f"{n}.json", content)
        assert [len(files) for files in one.run().files] == expected


def test_D06_hidden_and_special_files(make: Make) -> None:
    one = make()
    for name in ("x.json", "_y.json", ".z.json", "_d/q.json", "w.json.tmp", "sub/n.json"):
        one.put(name, f'{{"f":"{name}"}}\n')
    one.put("g.json.gz", gzip.compress(b'{"f":"g.json.gz"}\n')).put("e.json", "").run()
    assert one.rows("f") == ["g.json.gz", "sub/n.json", "w.json.tmp", "x.json"]


def test_D07_the_name_pattern_has_no_prefix(make: Make) -> None:
    one = make({"pathGlobFilter": "*.json"}).put("x.json", '{"id":"x"}\n').put("y.csv", '{"id":"y"}\n').run()
    assert one.rows("id") == ["x"]
    make({"cloudFiles.pathGlobFilter": "*.json"}).put("x.json", A).fails("CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudfiles.pathglobfilter")


@pytest.mark.xfail(strict=True, reason="load() has to return the columns, and it finds them with checked options only: it is what fails")
def test_a_wrong_key_is_reported_when_the_stream_starts_not_when_it_is_loaded(project: Callable[..., Any], tmp_path: Path) -> None:
    """D07 in a pipeline: the function that calls `load` returns, the update is refused."""
    one = project(
        f"""
        from pathlib import Path
        from pyspark import pipelines as dp

        @dp.table
        def t():
            reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.pathGlobFilter", "*.json")
            loaded = reader.load(spark.conf.get("landing"))
            Path({str(tmp_path / "loaded")!r}).touch()
            return loaded
        """
    )
    one.arrive("x.json", {"id": 1})
    (error,) = one.refused()
    assert error.code == "CF_UNKNOWN_OPTION_KEYS_ERROR"
    assert (tmp_path / "loaded").exists()


def test_D08_unknown_keys_are_an_error_only_with_the_prefix(make: Make) -> None:
    make({"cloudFiles.foo": "1"}).put("a.json", A).fails("CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudfiles.foo")
    for options in ({"cloudFiles.foo": "1", "cloudFiles.validateOptions": "false"}, {"foo": "1"}):
        assert make(options).put("a.json", A).run().rows("id") == ["1"]


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_D09_patterns_in_the_path(make: Make, tmp_path: Path, strict: bool) -> None:
    wrong = []
    for number, (pattern, file, lenient_yes, strict_yes) in enumerate(GLOBS):
        root = tmp_path / f"globs{number}"
        path = root / file.lstrip("/")
        path.parent.mkdir(parents=True)
        path.write_text("x\n")
        one = make({"cloudFiles.format": "text", "cloudFiles.useStrictGlobber": str(strict).lower()}, over=f"{root}{pattern}").run()
        if one.rows() != ([{"value": "x"}] if (strict_yes if strict else lenient_yes) else []):
            wrong.append((pattern, file))
    assert not wrong


def test_D10_an_unreadable_file_fails_the_batch_or_is_skipped(make: Make) -> None:
    noise = random.Random(1).randbytes(200)
    one = make({}, "id INT").put("a.json", A).put("broken.json.gz", noise)
    one.fails("FAILED_READ_FILE", "/broken.json.gz")
    assert one.rows() == []
    two = make({"ignoreCorruptFiles": "true"}, "id INT").put("a.json", A).put("broken.json.gz", noise).run()
    assert two.rows("id") == [1]
    assert two.run().rows("id") == [1]


def test_D11_a_file_that_is_gone_fails_the_batch_or_is_skipped(make: Make) -> None:
    one = make({}, "id INT").put("a.json", A).put("b.json", B)
    one.fails("FAILED_READ_FILE", "/b.json", planned=lambda: one.remove("b.json"))
    assert one.rows() == []
    two = make({"ignoreMissingFiles": "true"}, "id INT").put("a.json", A).put("b.json", B)
    assert two.run(planned=lambda: two.remove("b.json")).rows("id") == [1]


@pytest.mark.long
def test_D12_read_files_move_away_after_a_while(project: Callable[..., Any], tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    one = project(
        f"""
        from pyspark import pipelines as dp

        @dp.table
        def t():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                    .option("cloudFiles.cleanSource", "MOVE").option("cloudFiles.cleanSource.retentionDuration", "1 second")
                    .option("cloudFiles.cleanSource.moveDestination", {str(archive)!r}).load(spark.conf.get("landing")))

        @dp.materialized_view
        def state():
            return spark.sql("SELECT * FROM cloud_files_state(TABLE(t))")
        """
    )
    one.arrive("a.json", {"id": 1})
    one.run()
    for number in range(2):
        time.sleep(1.1)
        one.arrive(f"later{number}.json", {"id": 2 + number})
        one.run()
    assert (archive / "a.json").read_text() == '{"id": 1}\n'
    assert not (one.landing / "a.json").exists()
    assert one.rows("t", "id") == ["1", "2", "3"]
    modes = {Path(path).name: mode for path, mode in one.rows("state", "path", "archive_mode")}
    assert modes["a.json"] == "MOVE"


def test_D13_clean_up_with_contradicting_options_is_refused(make: Make) -> None:
    clean = "cloudFiles.cleanSource"
    for options in (
        {clean: "DELETE", f"{clean}.retentionDuration": "1 day"},
        {clean: "MOVE"},
        {clean: "MOVE", f"{clean}.moveDestination": "IN/old"},
    ):
        one = make({}, "id INT").put("a.json", A)
        one.options.update({key: value.replace("IN", str(one.folder)) for key, value in options.items()})
        with pytest.raises(LakeletError, match="cleanSource") as caught:
            one.run()
        assert caught.value.code != "NOT_SUPPORTED_YET"
        assert (Path(one.folder) / "a.json").exists()


@both
def test_D14_metadata_is_there_when_it_is_selected(make: Make) -> None:
    one = make().put("a.json", A).run("*", "_metadata")
    assert set(one.types()) == {"id", "_rescued_data"}
    found = one.last()["_metadata"]
    assert (found["file_name"], found["file_size"]) == ("a.json", 9)
    assert found["file_path"].endswith("/a.json")
    assert found["file_modification_time"].timestamp() == (Path(one.folder) / "a.json").stat().st_mtime
    two = make().put("a.json", A).run("*")
    assert set(two.last()) == {"id", "_rescued_data"}


@both
def test_D15_a_batch_that_was_not_committed_is_read_again_with_the_same_files(make: Make) -> None:
    one = make(INFER).put("a.json", A)
    one.fails("made by the test", read=die)
    one.put("b.json", B).run("id", "_metadata")
    assert [[(row["id"], row["_metadata"]["file_name"]) for row in batch] for batch in one.batches] == [[(1, "a.json")], [(2, "b.json")]]


def test_D16_a_new_checkpoint_reads_everything_again(make: Make) -> None:
    one = make().put("a.json", A).run()
    assert make(over=one.folder).run().rows("id") == ["1"]
    again = Program(one.folder, one.root, {})  # the state is there, Spark's logs are new
    assert again.run().rows("id") == ["1"]


def test_D17_cloud_options_have_no_effect_and_are_not_shown(make: Make) -> None:
    secret = {"cloudFiles.useNotifications": "true", "cloudFiles.region": "x", "cloudFiles.awsSecretKey": "s3cr3t"}
    one = make(secret).put("a.json", A).run()
    assert one.rows("id") == ["1"]
    notices = " ".join(one.open().notices)
    assert all(notices.count(key) == 1 for key in secret)
    assert "s3cr3t" not in notices + repr(one.open()) + one.open().reader_spec().to_json()


def test_D18_files_older_than_a_moment_are_left_out(make: Make) -> None:
    one = make({"modifiedAfter": "2022-01-01 00:00:00"})
    one.put("old.json", A, modified=1_577_836_800).put("new.json", B, modified=1_704_067_200).run()
    assert one.rows("id") == ["2"]
