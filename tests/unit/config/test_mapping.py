"""Paths of Databricks and their paths here; paths with a table's name (`--map`, `--table`). No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config.named_tables import named_tables, table_format
from lakelet.config.path_map import PathMap, flag_for, moved_folders, pairs_of, python_path_hint
from lakelet.config.update_config import load_config
from lakelet.files.stores import is_set_up

BASE = Path("/home/me/project")


def places(*pairs: tuple[str, str]) -> PathMap:
    return PathMap.of(pairs, BASE)


def nothing(scheme: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("prefix", "path", "place"),
    [
        ("/Volumes/main/raw", "/Volumes/main/raw", "/home/me/project/data"),
        ("/Volumes/main/raw", "/Volumes/main/raw/", "/home/me/project/data"),
        ("/Volumes/main/raw/", "/Volumes/main/raw/a/b.json", "/home/me/project/data/a/b.json"),
        ("/Volumes/main/raw", "/Volumes/main/raw/a/", "/home/me/project/data/a/"),
        ("/Volumes/main/raw", "dbfs:/Volumes/main/raw/a", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "file:/Volumes/main/raw/a", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "file:///Volumes/main/raw/a", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "//Volumes//main/raw//a", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "  /Volumes/main/raw/a ", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "/Volumes/main/./x/../raw/a", "/home/me/project/data/a"),
        ("/Volumes/main/raw", "/Volumes/main/raw/2024-01-01 00/*.json", "/home/me/project/data/2024-01-01 00/*.json"),
        ("/Volumes/main/raw", "/Volumes/main/raw/{a,b}/*/x[0-9].csv", "/home/me/project/data/{a,b}/*/x[0-9].csv"),
        ("/Volumes/main/raw", "/Volumes/main/rawer/a", None),
        ("/Volumes/main/raw", "/volumes/main/raw/a", None),
        ("/Volumes/main/raw", "Volumes/main/raw/a", None),
        ("dbfs:/x", "dbfs:/x/a", "/home/me/project/data/a"),
        ("dbfs:/x", "dbfs:///x/a", "/home/me/project/data/a"),
        ("dbfs:/x", "/dbfs/x/a", "/home/me/project/data/a"),
        ("dbfs:/x", "file:/dbfs/x/a", "/home/me/project/data/a"),
        ("dbfs:/x", "/x/a", "/home/me/project/data/a"),
        ("/dbfs/x", "dbfs:/x/a", "/home/me/project/data/a"),
        ("/x", "dbfs:/x/a", "/home/me/project/data/a"),
        ("dbfs:/", "dbfs:/FileStore/a", "/home/me/project/data/FileStore/a"),
        ("dbfs:/", "/mnt/lake/a", "/home/me/project/data/mnt/lake/a"),
        ("dbfs:/", "/home/other/a", None),
        ("/mnt", "dbfs:/mnt/demo/a", "/home/me/project/data/demo/a"),
        ("s3a://bucket", "s3a://bucket/a", "/home/me/project/data/a"),
        ("s3a://bucket/in", "s3://bucket/in/a", "/home/me/project/data/a"),
        ("s3://bucket", "s3a://buckets/a", None),
        ("abfss://c@account.dfs.core.windows.net", "abfss://c@account.dfs.core.windows.net/x/a", "/home/me/project/data/x/a"),
        ("abfss://c@account.dfs.core.windows.net", "abfss://d@account.dfs.core.windows.net/x/a", None),
        ("gs://b/x/", "gs://b//x/a", "/home/me/project/data/a"),
        ("in", "in/a.csv", "/home/me/project/data/a.csv"),
        ("./in", "in", "/home/me/project/data"),
    ],
)
def test_one_entry_serves_every_spelling_of_a_path(prefix, path, place):
    assert places((prefix, "data")).mapped(path) == (path if place is None else place)


def test_the_longest_prefix_wins_whatever_the_order():
    found = places(("/Volumes", "all"), ("/Volumes/main/raw/one.csv", "one.csv"), ("dbfs:/Volumes/main", "main"))
    assert found.mapped("/Volumes/main/raw/one.csv") == "/home/me/project/one.csv"
    assert found.mapped("/Volumes/main/raw/two.csv") == "/home/me/project/main/raw/two.csv"
    assert found.mapped("/Volumes/other/x") == "/home/me/project/all/other/x"


def test_a_place_may_be_absolute_a_uri_or_below_home():
    assert places(("/mnt/x", "/data/x")).mapped("/mnt/x/a") == "/data/x/a"
    assert places(("/mnt/x", "file:///data/x/")).mapped("/mnt/x/a") == "/data/x/a"
    assert places(("/mnt/x", "s3a://bucket/x/")).mapped("/mnt/x/a") == "s3a://bucket/x/a"
    assert places(("/mnt/x", "~/x")).mapped("/mnt/x/a") == str(Path.home() / "x" / "a")


def test_what_is_mapped_is_not_mapped_again_and_the_storage_never():
    found = PathMap((*places(("/data", "/data/here")).entries,), kept=("/data/storage",))
    assert found.mapped("/data/a") == "/data/here/a"
    assert found.mapped("/data/storage/tables/t") == "/data/storage/tables/t"


def test_one_prefix_with_two_places_is_refused_however_it_is_spelt():
    with pytest.raises(LakeletError, match="mapped twice") as caught:
        places(("dbfs:/x", "a"), ("/dbfs/x/", "b"))
    assert caught.value.code == "USAGE"
    assert len(places(("dbfs:/x", "a"), ("/dbfs/x/", "./a")).entries) == 1


def test_a_prefix_is_no_pattern():
    with pytest.raises(LakeletError, match="holds a pattern") as caught:
        places(("/Volumes/raw/*", "a"))
    assert caught.value.code == "USAGE"


@pytest.mark.parametrize("text", ["/Volumes/raw", "=data", "/Volumes/raw=", " = "])
def test_a_pair_needs_both_sides(text):
    with pytest.raises(LakeletError, match="expected FROM=TO") as caught:
        pairs_of([text], "--map", form="FROM=TO", example="/a=b")
    assert (caught.value.code, caught.value.todo) == ("USAGE", "For example: --map /a=b")


def test_a_path_with_a_folder_like_day_1_is_mapped_where_that_is_what_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iot").mkdir()
    texts = ["/a/format=delta=iot", "/a/day=1=none", "/a=iot", "/a=x=y", "s3://b/day=1=s3://other/x", "/a=s3://b/day=1"]
    found = pairs_of(texts, "--map", form="FROM=TO", example="/a=b")
    clouds = [("s3://b/day=1", "s3://other/x"), ("/a", "s3://b/day=1")]
    assert found == [("/a/format=delta", "iot"), ("/a/day", "1=none"), ("/a", "iot"), ("/a", "x=y"), *clouds]
    (tmp_path / "format=delta=iot").mkdir()
    assert pairs_of(["/a/=format=delta=iot"], "--map", form="FROM=TO", example="/a=b") == [("/a/", "format=delta=iot")]


# --- what nothing maps ----------------------------------------------------------------------------------------------------------------


def test_a_parameter_that_an_unmapped_path_begins_with_is_named():
    parameters = {"landing": "/Volumes/main/raw", "other": "/Volumes/other", "day": "2026"}
    with pytest.raises(LakeletError) as caught:
        PathMap(parameters=parameters).located("/Volumes/main/raw/in/*.json", readable=nothing)
    assert caught.value.code == "PATH_NOT_MAPPED"
    assert "'landing'" in (caught.value.why or "")
    assert "--param landing=FOLDER" in (caught.value.todo or "")


@pytest.mark.parametrize(
    ("path", "flag"),
    [
        ("/Volumes/main/raw/in", "--map /Volumes/main/raw/in=FOLDER"),
        ("/Volumes/main/raw/in/", "--map /Volumes/main/raw/in=FOLDER"),
        ("/Volumes/main/raw/in/*.json", "--map /Volumes/main/raw/in=FOLDER"),
        ("/Volumes/main/raw/{a,b}/x.json", "--map /Volumes/main/raw=FOLDER"),
        ("/databricks-datasets/iot/x.csv", "--map /databricks-datasets/iot/x.csv=FILE"),
        ("dbfs:/mnt/demo", "--map dbfs:/mnt/demo=FOLDER"),
        ("dbfs:/x", "--map dbfs:/x=FOLDER"),
        ("/dbfs/x", "--map /dbfs/x=FOLDER"),
        ("/mnt/lake", "--map /mnt/lake=FOLDER"),
        ("/FileStore/x", "--map /FileStore/x=FOLDER"),
        ("file:/Workspace/Users/me", "--map file:/Workspace/Users/me=FOLDER"),
        ("s3a://bucket/x/", "--map s3a://bucket/x=FOLDER"),
        ("abfss://c@a.dfs.core.windows.net/x", "--map abfss://c@a.dfs.core.windows.net/x=FOLDER"),
        ("/Volumes/main/raw/a b", "--map '/Volumes/main/raw/a b'=FOLDER"),
    ],
)
def test_a_hosted_path_without_place_names_the_flag_to_add(path, flag):
    with pytest.raises(LakeletError) as caught:
        places(("/Volumes/other", "data")).located(path, readable=nothing)
    assert caught.value.code == "PATH_NOT_MAPPED"
    assert str(caught.value.todo).startswith(f"Say where it lies: {flag}.")
    assert flag_for(path) == flag


def test_the_flag_that_is_named_maps_the_path(tmp_path):
    for path in ("/Volumes/main/raw/in/*.json", "dbfs:/x/y/", "s3a://bucket/x"):
        prefix = flag_for(path).removeprefix("--map ").rpartition("=")[0]
        assert PathMap.of([(prefix, str(tmp_path))], tmp_path).located(path, readable=nothing).startswith(str(tmp_path))


@pytest.mark.parametrize("path", ["data/in", "./in", "/tmp/x", "/home/me/x/*.json", "file:/tmp/x", "kafka:topic", "hdfs://host/x", ""])
def test_other_paths_stay_as_they_are(path):
    assert places(("/Volumes", "data")).located(path, readable=nothing) == path


def test_relative_paths_are_looked_for_where_the_command_was_called_and_then_in_the_project(tmp_path, monkeypatch):
    here, project = tmp_path / "here", tmp_path / "project"
    for folder in (here / "both", project / "both", project / "data" / "events"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    paths = PathMap(root=str(project))
    assert paths.anchored("data/events/") == f"{project}/data/events/"
    assert paths.anchored("./data/*/a.json") == f"{project}/data/*/a.json"
    assert paths.anchored("both") == f"{here}/both"
    for other in ("nowhere/x", "/data/events", "s3a://bucket/data", ""):
        assert paths.anchored(other) == other
    assert PathMap().anchored("data/events/") == "data/events/"


def test_a_cloud_that_can_be_read_needs_no_place():
    assert places().located("s3a://bucket/x", readable=lambda scheme: scheme == "s3a") == "s3a://bucket/x"


def test_a_cloud_can_be_read_where_the_machine_says_who_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [is_set_up(scheme, {}) for scheme in ("s3a", "gs", "abfss", "wasbs")] == [False] * 4
    assert is_set_up("s3", {"AWS_PROFILE": "me"})
    assert is_set_up("abfss", {"AZURE_STORAGE_ACCOUNT_KEY": "x"})
    assert not is_set_up("gs", {"AWS_PROFILE": "me"})
    (tmp_path / ".aws").mkdir()
    assert is_set_up("s3a", {})


def test_a_place_that_does_not_exist_is_refused_where_it_is_read_and_made_where_it_is_written(tmp_path):
    found = PathMap.of([("/Volumes/raw", "data")], tmp_path)
    with pytest.raises(LakeletError) as caught:
        found.located("/Volumes/raw/x", readable=nothing)
    assert (caught.value.code, caught.value.todo) == (
        "MAP_TARGET_MISSING",
        "Put the files there, or name another folder: --map /Volumes/raw=FOLDER",
    )
    assert found.located("/Volumes/raw/x", readable=nothing, writing=True) == str(tmp_path / "data/x")
    (tmp_path / "data").mkdir()
    assert found.located("/Volumes/raw/x", readable=nothing) == str(tmp_path / "data/x")


def test_a_hosted_path_that_this_machine_has_is_that_path(tmp_path, monkeypatch):
    monkeypatch.setattr("lakelet.config.path_map.DATABRICKS_ROOTS", frozenset({"dbfs", tmp_path.parts[1]}))
    found = places()
    (tmp_path / "in").mkdir()
    assert found.located(f"{tmp_path}/in/*.json", readable=nothing) == f"{tmp_path}/in/*.json"
    assert found.located(f"dbfs:{tmp_path}/in/", readable=nothing) == f"{tmp_path}/in/"
    assert found.located(f"{tmp_path}/out", readable=nothing, writing=True) == f"{tmp_path}/out"
    for path, writing in ((f"{tmp_path}/out", False), (f"{tmp_path}/none/out", True), (f"/{tmp_path.parts[1]}/none", True)):
        with pytest.raises(LakeletError, match="no --map"):
            found.located(path, readable=nothing, writing=writing)


# --- tables ---------------------------------------------------------------------------------------------------------------------------


def tables(*pairs: tuple[str, str], base: Path = BASE) -> dict[str, str]:
    return {key: found.path for key, found in named_tables(pairs, Namespace("main", "shop"), base).items()}


def test_names_of_tables_have_one_to_three_parts_in_any_spelling():
    found = tables(("orders", "a"), ("Sales.Orders", "b"), ("`dev-cat`.01_bronze.`x.y`", "c"), ("samples.tpch.orders", "s3a://b/o"))
    assert found == {
        "main.shop.orders": "/home/me/project/a",
        "main.sales.orders": "/home/me/project/b",
        "dev-cat.01_bronze.x.y": "/home/me/project/c",
        "samples.tpch.orders": "s3a://b/o",
    }


@pytest.mark.parametrize("pairs", [[("a.b.c.d", "x")], [("a..b", "x")], [("t", "a"), ("main.shop.T", "b")]])
def test_what_is_no_name_and_one_name_with_two_places_are_refused(pairs):
    with pytest.raises(LakeletError) as caught:
        tables(*pairs)
    assert caught.value.code == "USAGE"


@pytest.mark.parametrize(
    ("file", "content", "format", "options"),
    [
        ("_delta_log/0.json", "", "delta", {}),
        ("a.parquet", "", "parquet", {}),
        ("day=1/part.snappy.parquet", "", "parquet", {}),
        ("a.csv", "", "csv", {"header": "true", "inferSchema": "true"}),
        ("a.csv.gz", "", "csv", {"header": "true", "inferSchema": "true"}),
        ("a.tsv", "", "csv", {"header": "true", "inferSchema": "true", "sep": "\t"}),
        ("a.json", '{"a": 1}\n{"a": 2}\n', "json", {}),
        ("a.json", '{"a": 1}', "json", {}),
        ("a.jsonl", "", "json", {}),
        ("a.json", '\ufeff [{"a": 1}]', "json", {"multiLine": "true"}),
        ("a.json", '{\n  "a": 1\n}\n', "json", {"multiLine": "true"}),
        ("a.orc", "", "orc", {}),
    ],
)
def test_a_place_tells_its_format(tmp_path, file, content, format, options):
    place = tmp_path / "t" / file
    place.parent.mkdir(parents=True)
    place.write_text(content, encoding="utf-8")
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "README").touch()
    (found,) = named_tables([("t", "t")], Namespace(), tmp_path).values()
    assert (table_format(found).format, table_format(found).options) == (format, options)
    if format != "delta":
        (found,) = named_tables([("t", str(place))], Namespace(), tmp_path).values()
        assert (table_format(found).format, table_format(found).options) == (format, options)


def test_a_missing_place_and_one_without_data_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").touch()
    found = named_tables([("a", "none"), ("b", "empty"), ("c", "notes"), ("d", "notes/a.txt")], Namespace(), tmp_path)
    errors = {}
    for table in found.values():
        with pytest.raises(LakeletError) as caught:
            table_format(table)
        errors[table.given] = caught.value.code
    assert errors == {
        "a": "TABLE_PLACE_MISSING",
        "b": "TABLE_PLACE_UNREADABLE",
        "c": "TABLE_PLACE_UNREADABLE",
        "d": "TABLE_PLACE_UNREADABLE",
    }


# --- where they are written -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pipeline(tmp_path):
    (tmp_path / "a.py").write_text("import dlt\n")
    return tmp_path


def config(folder, toml="", *, environ=None, cwd=None, **flags):
    (folder / "pyproject.toml").write_text(f"[tool.lakelet]\n{toml}")
    return load_config([str(folder)], cwd=cwd or folder, environ=environ or {}, **flags)


def test_flags_win_over_the_environment_which_wins_over_the_project(pipeline, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = config(
        pipeline,
        'map = { "/mnt/a" = "pa", "/mnt/b" = "pb", "/mnt/c" = "pc" }\ntable = { "x.y" = "pt", "z" = "pz" }',
        environ={"LAKELET_MAP": "dbfs:/mnt/b=eb; /mnt/c=ec", "LAKELET_TABLE": "z=ez\nw=ew"},
        cwd=elsewhere,
        maps=[("/dbfs/mnt/c", "fc")],
        tables=[("main.default.w", "fw")],
    )
    assert {path: found.paths.mapped(path) for path in ("/mnt/a", "/mnt/b", "/mnt/c")} == {
        "/mnt/a": str(pipeline / "pa"),
        "/mnt/b": str(elsewhere / "eb"),
        "/mnt/c": str(elsewhere / "fc"),
    }
    assert {key: table.path for key, table in found.tables.items()} == {
        "main.x.y": str(pipeline / "pt"),
        "main.default.z": str(elsewhere / "ez"),
        "main.default.w": str(elsewhere / "fw"),
    }
    assert found.paths.kept == (str(pipeline / ".lakelet"),)


def test_tables_of_the_project_file_may_be_written_as_toml_sections(pipeline):
    found = config(pipeline, '[tool.lakelet.map]\n"/Volumes/x" = "x"\n[tool.lakelet.table]\nsamples.tpch.orders = "o"\n')
    assert found.paths.mapped("/Volumes/x/a") == str(pipeline / "x" / "a")
    assert found.tables["samples.tpch.orders"].path == str(pipeline / "o")


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ('storage = "s"\nmap = "/a=b"', 3),
        ('map = { "/a" = 1 }', 2),
        ('table = ["a=b"]', 2),
        ('map = { "/a" = "x", "dbfs:/a" = "y" }', 2),
        ('table = { "a.b.c.d" = "x" }', 2),
    ],
)
def test_mistakes_in_the_project_file_name_file_and_line(pipeline, toml, line):
    with pytest.raises(LakeletError) as caught:
        config(pipeline, toml)
    assert caught.value.code == "CONFIG_INVALID"
    assert str(caught.value.where) == f"pyproject.toml, line {line}"


def test_mistakes_in_variables_name_the_variable(pipeline):
    with pytest.raises(LakeletError, match="LAKELET_TABLE orders: expected NAME=PATH"):
        config(pipeline, environ={"LAKELET_TABLE": "orders"})


def test_a_hosted_path_that_python_itself_does_not_find_says_which_map_helps(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        Path("/Volumes/main/shop/config.yml").read_text()
    assert "--map /Volumes/main/shop/config.yml=FILE" in str(python_path_hint(missing.value))
    with pytest.raises(FileNotFoundError) as other:
        (tmp_path / "config.yml").read_text()
    assert python_path_hint(other.value) is None


def test_a_path_that_the_map_leads_to_has_the_name_of_the_code_in_one_spelling() -> None:
    mapped = places(("dbfs:/Volumes/raw/", "data"), ("/mnt/x", "data/deep"), ("s3://bucket/in", "/lake"))
    named = {"/home/me/project/data/a/b": "/Volumes/raw/a/b", "/home/me/project/data/deep": "/mnt/x", "/lake/1": "s3a:/bucket/in/1"}
    assert {path: mapped.name_of(path) for path in named} == named
    assert [mapped.name_of(path) for path in ("/home/me/project", "/home/me/project/data2", "s3a://bucket/in")] == ["", "", ""]


def test_moved_folders_are_pairs_of_absolute_paths_and_the_new_one_must_be_there(tmp_path: Path) -> None:
    assert moved_folders([("old/", f"file:{tmp_path}/")], tmp_path / "in") == ((str(tmp_path / "in" / "old"), str(tmp_path)),)
    assert moved_folders([("/old", "s3a://bucket/in/")], tmp_path) == (("/old", "s3a://bucket/in"),)
    for pair, text in {("old", "nowhere"): "nowhere is not a folder", (".", str(tmp_path)): "that is the same folder"}.items():
        with pytest.raises(LakeletError, match=text) as caught:
            moved_folders([pair], tmp_path)
        assert caught.value.code == "USAGE"
