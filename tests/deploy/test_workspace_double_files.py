"""The workspace on loopback: files, folders, volumes, as the real SDK sees them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from databricks.sdk.errors import BadRequest, NotFound, ResourceAlreadyExists, ResourceConflict, ResourceDoesNotExist
from databricks.sdk.service.catalog import VolumeType
from databricks.sdk.service.workspace import ExportFormat, ImportFormat, Language, ObjectType

from tests.workspace_double import Workspace

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Client = Callable[..., "WorkspaceClient"]
HOME = "/Users/dev.user@example.com"


def test_a_file_comes_back_as_it_was_uploaded(workspace: Workspace, client: Client) -> None:
    content = bytes(range(256)) * 40 + b"\r\n--boundary\r\n"
    api = client().workspace
    api.mkdirs(f"/Workspace{HOME}/app")
    api.upload(f"/Workspace{HOME}/app/data.bin", content, format=ImportFormat.AUTO)
    assert api.download(f"{HOME}/app/data.bin", format=ExportFormat.AUTO).read() == content
    assert workspace.files[f"{HOME}/app/data.bin"] == content
    assert workspace.files[f"/Workspace{HOME}/app/data.bin"] == content


def test_json_imports_and_exports_hold_base64(client: Client) -> None:
    api = client().workspace
    api.import_(f"{HOME}/notes.txt", content="aGVsbG8=", format=ImportFormat.RAW)
    assert api.export(f"{HOME}/notes.txt", format=ExportFormat.SOURCE).content == "aGVsbG8="


def test_a_file_that_is_there_is_kept_unless_overwritten(workspace: Workspace, client: Client) -> None:
    api = client().workspace
    api.upload(f"{HOME}/lock", b"first", format=ImportFormat.AUTO)
    with pytest.raises(ResourceAlreadyExists, match="already exists"):
        api.upload(f"{HOME}/lock", b"second", format=ImportFormat.AUTO)
    assert workspace.files[f"{HOME}/lock"] == b"first"
    api.upload(f"{HOME}/lock", b"third", format=ImportFormat.AUTO, overwrite=True)
    assert workspace.files[f"{HOME}/lock"] == b"third"


def test_exactly_one_of_many_imports_without_overwrite_wins(workspace: Workspace, client: Client) -> None:
    clients = [client() for _ in range(4)]

    def take(number: int) -> int | None:
        try:
            clients[number % 4].workspace.upload(f"{HOME}/deploy.lock", str(number).encode(), format=ImportFormat.AUTO)
        except ResourceAlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(16) as pool:
        winners = [number for number in pool.map(take, range(32)) if number is not None]
    assert len(winners) == 1
    assert workspace.files[f"{HOME}/deploy.lock"] == str(winners[0]).encode()


def test_a_file_needs_its_folder(client: Client) -> None:
    with pytest.raises(ResourceDoesNotExist, match=r"The parent folder \(.*/none\) does not exist"):
        client().workspace.upload(f"{HOME}/none/a.py", b"", format=ImportFormat.AUTO)


def test_a_python_file_with_the_header_becomes_a_notebook(workspace: Workspace, client: Client) -> None:
    api = client().workspace
    api.upload(f"{HOME}/etl.py", b"# Databricks notebook source\nprint(1)\n", format=ImportFormat.AUTO)
    api.upload(f"{HOME}/helper.py", b"print(1)\n", format=ImportFormat.AUTO)
    kinds = {item.path: item.object_type for item in api.list(HOME)}
    assert kinds == {f"{HOME}/etl": ObjectType.NOTEBOOK, f"{HOME}/helper.py": ObjectType.FILE}


def test_a_source_import_is_a_notebook_whatever_it_is_called(client: Client) -> None:
    api = client().workspace
    api.upload(f"{HOME}/etl.py", b"print(1)\n")
    status = api.get_status(f"{HOME}/etl.py")
    assert (status.object_type, status.language) == (ObjectType.NOTEBOOK, Language.PYTHON)


def test_folders_are_listed_level_by_level_and_recursively(workspace: Workspace, client: Client) -> None:
    for name in ("a.py", "silver/b.py", "silver/deep/c.sql"):
        workspace.files[f"{HOME}/app/{name}"] = name
    api = client().workspace
    assert [item.path for item in api.list(f"{HOME}/app")] == [f"{HOME}/app/a.py", f"{HOME}/app/silver"]
    found = [item.path for item in api.list(f"/Workspace{HOME}/app", recursive=True)]
    assert found == [f"{HOME}/app/a.py", f"{HOME}/app/silver/b.py", f"{HOME}/app/silver/deep/c.sql"]
    assert workspace.files.below(f"{HOME}/app/silver") == {"b.py": b"silver/b.py", "deep/c.sql": b"silver/deep/c.sql"}


def test_a_folder_with_files_is_deleted_only_recursively(workspace: Workspace, client: Client) -> None:
    workspace.files[f"{HOME}/app/a.py"] = "1"
    api = client().workspace
    with pytest.raises(BadRequest, match="is not empty"):
        api.delete(f"{HOME}/app")
    api.delete(f"{HOME}/app", recursive=True)
    assert list(workspace.files) == []
    with pytest.raises(ResourceDoesNotExist, match="doesn't exist"):
        api.get_status(f"{HOME}/app")


def test_a_folder_cannot_be_made_below_a_file(workspace: Workspace, client: Client) -> None:
    workspace.files[f"{HOME}/app"] = "a file"
    with pytest.raises(ResourceAlreadyExists):
        client().workspace.mkdirs(f"{HOME}/app/below")


@pytest.mark.parametrize("path", ["relative", f"{HOME}/../other"])
def test_a_path_must_be_absolute(client: Client, path: str) -> None:
    with pytest.raises(BadRequest):
        client().workspace.get_status(path)


def test_more_than_ten_megabytes_are_refused(client: Client) -> None:
    with pytest.raises(BadRequest, match="exceeded max size"):
        client().workspace.upload(f"{HOME}/big", b"0" * (10 * 1024 * 1024 + 1), format=ImportFormat.AUTO)


def _volume(api: Any) -> None:
    api.schemas.create("raw", "main")
    api.volumes.create("main", "raw", "landing", VolumeType.MANAGED)


def test_files_of_volumes_are_written_read_and_listed(workspace: Workspace, client: Client) -> None:
    api = client()
    _volume(api)
    api.files.upload("/Volumes/main/raw/landing/a b/1.json", BytesIO(b"{}"))
    content = api.files.download("/Volumes/main/raw/landing/a b/1.json").contents
    assert content is not None
    assert content.read() == b"{}"
    assert api.files.get_metadata("/Volumes/main/raw/landing/a b/1.json").content_length == 2
    assert [entry.path for entry in api.files.list_directory_contents("/Volumes/main/raw/landing")] == ["/Volumes/main/raw/landing/a b"]
    with pytest.raises(ResourceConflict):
        api.files.upload("/Volumes/main/raw/landing/a b/1.json", BytesIO(b"[]"))
    with pytest.raises(NotFound):
        api.files.upload("/Volumes/main/raw/none/1.json", BytesIO(b"{}"))


def test_a_dropped_volume_takes_its_files_along(workspace: Workspace, client: Client) -> None:
    api = client()
    _volume(api)
    api.files.upload("/Volumes/main/raw/landing/1.json", BytesIO(b"{}"))
    with pytest.raises(BadRequest, match="not empty"):
        api.schemas.delete("main.raw")
    api.volumes.delete("main.raw.landing")
    api.schemas.delete("main.raw")
    assert (workspace.volume_contents, workspace.schemas) == ({}, {})


def test_schemas_need_a_catalog_and_a_new_name(client: Client) -> None:
    api = client()
    api.schemas.create("raw", "main", comment="as arrived")
    assert api.schemas.get("main.raw").comment == "as arrived"
    with pytest.raises(BadRequest, match="Schema 'raw' already exists"):
        api.schemas.create("raw", "main")
    with pytest.raises(NotFound, match="Catalog 'none' does not exist"):
        api.schemas.create("raw", "none")
    api.schemas.update("main.raw", comment="changed")
    assert [schema.comment for schema in api.schemas.list("main")] == ["changed"]
