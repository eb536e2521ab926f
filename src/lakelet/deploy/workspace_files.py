"""Files in the workspace: read, write, delete. Every call may be repeated."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.deploy.client import Client

_IMPORT = "/api/2.0/workspace/import"


def read_file(client: Client, path: str) -> bytes | None:
    """The content of a workspace file, byte for byte; None where there is none."""
    try:
        with client.sdk.workspace.download(path) as content:
            return content.read()
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return None
        raise


def write_file(client: Client, path: str, content: bytes) -> None:
    """Write a file as a whole, over what is there. Its folder exists. What Databricks takes for a notebook becomes one."""
    from databricks.sdk.service.workspace import ImportFormat

    client.sdk.workspace.upload(path, content, format=ImportFormat.AUTO, overwrite=True)


def make_file(client: Client, path: str, content: bytes) -> bool:
    """Write a file that must not exist yet; False where one does."""
    body = {"path": path, "content": base64.b64encode(content).decode(), "format": "AUTO", "overwrite": False}
    try:
        client.sdk.api_client.do("POST", _IMPORT, body=body)
    except LakeletError as error:
        if error.code == "WORKSPACE_CONFLICT" or "RESOURCE_ALREADY_EXISTS" in (error.why or ""):
            return False
        raise
    return True


def make_folder(client: Client, path: str) -> None:
    """Make a folder and those above it, where they do not exist."""
    client.sdk.workspace.mkdirs(path)


def delete_path(client: Client, path: str, *, recursive: bool = False) -> bool:
    """Delete a file or folder; False where there is none. Raises what the workspace says of a folder that is not empty."""
    try:
        client.sdk.workspace.delete(path, recursive=recursive)
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return False
        raise
    return True


def list_folder(client: Client, path: str) -> list[dict[str, Any]]:
    """Return the entries of a folder as the workspace describes them; none for a missing folder."""
    try:
        answer = client.sdk.api_client.do("GET", "/api/2.0/workspace/list", query={"path": path})
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return []
        raise
    return list(answer.get("objects", [])) if isinstance(answer, dict) else []
