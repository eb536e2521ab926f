"""Workspace objects over HTTP: `/api/2.0/workspace/...` (facts 1.2)."""

from __future__ import annotations

import base64
import binascii
from posixpath import splitext
from typing import TYPE_CHECKING, Any

from tests.workspace_double.tree import Node, NodeType, Tree, absolute
from tests.workspace_double.wire import Answer, ApiError, Call, User, denied, invalid, unmodelled

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

# Workspace API 2.0: "The maximum allowed size of a request to the Workspace API is 10MB."
LARGEST = 10 * 1024 * 1024
_LANGUAGES = {".py": ("PYTHON", b"# Databricks notebook source"), ".sql": ("SQL", b"-- Databricks notebook source")}
_LANGUAGES |= {".scala": ("SCALA", b"// Databricks notebook source"), ".r": ("R", b"# Databricks notebook source")}
_FORMATS = ("AUTO", "DBC", "HTML", "JUPYTER", "RAW", "R_MARKDOWN", "SOURCE")


class Objects:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.tree = Tree(workspace.clock)
        add = workspace.routes.add
        add("POST", "/api/2.0/workspace/import", self._import)
        add("GET", "/api/2.0/workspace/export", self._export)
        add("GET", "/api/2.0/workspace/list", self._list)
        add("GET", "/api/2.0/workspace/get-status", self._status)
        add("POST", "/api/2.0/workspace/mkdirs", self._mkdirs)
        add("POST", "/api/2.0/workspace/delete", self._delete)

    def require(self, user: User, path: str, level: str) -> None:
        """Raise 403 where a user may not: one's own home and `/Shared` are open, other folders where they were granted."""
        own = f"/Users/{user.name}"
        if user.admin or path in (own, "/Shared") or path.startswith((own + "/", "/Shared/")):
            return
        parts = path.split("/")
        above = ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]
        folders = [self.tree.nodes[prefix] for prefix in above if prefix in self.tree.nodes]
        ids = [str(node.object_id) for node in folders if node.type is NodeType.DIRECTORY]
        if not any(self._workspace.permissions.allows(user, "directories", key, level) for key in ids):
            raise denied(f"User {user.name} does not have {level} permission on {path}.")

    def _import(self, call: Call) -> Answer:
        """JSON with base64 content, or a form (facts 1.2). Language and format as Workspace API 2.0, "Import" says."""
        call.only({"path", "format", "language", "content", "overwrite"}, "Import")
        path, kind = absolute(call.text("path")), call.body.get("format") or "SOURCE"
        content = _content(call)
        if len(content) > LARGEST:
            raise ApiError(
                400, "MAX_NOTEBOOK_SIZE_EXCEEDED", f"File size imported is ({len(content)} bytes), exceeded max size ({LARGEST} bytes)"
            )
        if kind not in _FORMATS:
            raise invalid(f"'{kind}' is not a valid import format")
        self.require(call.user, path, "CAN_EDIT")
        if kind == "AUTO" and path.endswith(".lvdash.json") and self._workspace.imports_dashboards:
            self._workspace.dashboard_routes.imported(path, content.decode(), call.user, overwrite=call.flag("overwrite"))
            return Answer()
        node_path, node_type, language = _placed(path, kind, call.body.get("language"), content)
        new = node_path not in self.tree.nodes
        node = self.tree.write(node_path, node_type, content, language=language, overwrite=call.flag("overwrite"))
        if new:
            self._workspace.permissions.created("files" if node_type is NodeType.FILE else "notebooks", str(node.object_id), call.user)
        return Answer()

    def _export(self, call: Call) -> Answer:
        path = absolute(call.text("path"))
        self.require(call.user, path, "CAN_READ")
        node, kind = self.tree.get(path), call.query.get("format", "SOURCE")
        if node.type is NodeType.DIRECTORY:
            raise invalid("Only DBC format is supported for exporting a folder")
        if kind not in ("SOURCE", "AUTO", "RAW"):
            raise unmodelled(f"the export format {kind}")
        if call.flag("direct_download"):
            return Answer(node.content, headers={"Content-Type": "application/octet-stream"})
        return Answer({"content": base64.b64encode(node.content).decode(), "file_type": splitext(path)[1].lstrip(".")})

    def _list(self, call: Call) -> Answer:
        """The children of a folder, or the object itself; not what lies deeper, which a client asks for folder by folder."""
        if "notebooks_modified_after" in call.query:
            raise unmodelled("notebooks_modified_after")
        path = absolute(call.text("path"))
        self.require(call.user, path, "CAN_READ")
        node = self.tree.get(path)
        nodes = self.tree.children(path) if node.type is NodeType.DIRECTORY else [node]
        return Answer({"objects": [_shown(each) for each in nodes]} if nodes else {})

    def _status(self, call: Call) -> Answer:
        path = absolute(call.text("path"))
        self.require(call.user, path, "CAN_READ")
        return Answer(_shown(self.tree.get(path)))

    def _mkdirs(self, call: Call) -> Answer:
        call.only({"path"}, "Mkdirs")
        path = absolute(call.text("path"))
        self.require(call.user, path, "CAN_EDIT")
        self.make_folder(path, call.user)
        return Answer()

    def make_folder(self, path: str, user: User) -> None:
        """A folder with its parents; whoever makes them manages them."""
        before = set(self.tree.nodes)
        self.tree.make_folder(path)
        for made in set(self.tree.nodes) - before:
            self._workspace.permissions.created("directories", str(self.tree.nodes[made].object_id), user)

    def _delete(self, call: Call) -> Answer:
        call.only({"path", "recursive"}, "Delete")
        path = absolute(call.text("path"))
        self.require(call.user, path, "CAN_MANAGE")
        for node in self.tree.delete(path, recursive=call.flag("recursive")):
            if node.type is NodeType.DASHBOARD:
                self._workspace.dashboard_routes.trash(node.resource_id)
        return Answer()


def _content(call: Call) -> bytes:
    content = call.body.get("content")
    if call.multipart:
        return content if isinstance(content, bytes) else b""
    try:
        return base64.b64decode(content or "", validate=True)
    except (binascii.Error, TypeError):
        raise invalid("The content is not base64-encoded") from None


def _placed(path: str, kind: str, language: str | None, content: bytes) -> tuple[str, NodeType, str | None]:
    """Where an import goes and as what: AUTO looks at the extension and the first line, and cuts the extension off a notebook."""
    stem, extension = splitext(path)
    known, header = _LANGUAGES.get(extension.lower(), ("", b""))
    if kind == "AUTO":
        if known and content.startswith(header):
            return stem, NodeType.NOTEBOOK, known
        if extension == ".ipynb":
            raise unmodelled("Jupyter notebooks")
        return path, NodeType.FILE, None
    if kind == "RAW":
        return path, NodeType.FILE, None
    if kind != "SOURCE":
        raise unmodelled(f"the import format {kind}")
    if not language:
        raise invalid("The language is required to import a single file as SOURCE")
    return path, NodeType.NOTEBOOK, language


def _shown(node: Node) -> dict[str, Any]:
    """ObjectInfo of the REST API reference ("Get status"); only files have a size."""
    shown: dict[str, Any] = {"object_type": node.type.value, "path": node.path, "object_id": node.object_id}
    if node.type is not NodeType.DIRECTORY:
        shown |= {"created_at": node.created_at, "modified_at": node.modified_at}
    if node.type is NodeType.FILE:
        shown["size"] = len(node.content)
    if node.language:
        shown["language"] = node.language
    shown["resource_id"] = node.resource_id or str(node.object_id)
    return shown
