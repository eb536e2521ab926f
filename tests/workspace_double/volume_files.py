"""Files of volumes over HTTP: `/api/2.0/fs/...` (facts 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.workspace_double.wire import Answer, ApiError, Call, invalid, missing

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace


class VolumeFiles:
    """`stored`: content by path (`/Volumes/<catalog>/<schema>/<volume>/...`); `folders`: folders that were made."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.stored: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self._changed: dict[str, int] = {}
        add = workspace.routes.add
        add("PUT", "/api/2.0/fs/files/{path:path}", self._write)
        add("GET", "/api/2.0/fs/files/{path:path}", self._read)
        add("HEAD", "/api/2.0/fs/files/{path:path}", self._read)
        add("DELETE", "/api/2.0/fs/files/{path:path}", self._remove)
        add("PUT", "/api/2.0/fs/directories/{path:path}", self._make)
        add("GET", "/api/2.0/fs/directories/{path:path}", self._list)
        add("HEAD", "/api/2.0/fs/directories/{path:path}", self._look)
        add("DELETE", "/api/2.0/fs/directories/{path:path}", self._remove_folder)
        add("POST", "/api/2.0/fs/create-download-url", self._no_url, reads=True)

    def _no_url(self, call: Call) -> Answer:
        """facts 1.2, `files.download`: on 404 the SDK falls back to `GET /api/2.0/fs/files/...`."""
        raise ApiError(404, "FEATURE_DISABLED", "Presigned URLs are not available in this workspace.")

    def _write(self, call: Call) -> Answer:
        path = self._place(call)
        if path in self.stored and not call.flag("overwrite"):
            raise ApiError(409, "ALREADY_EXISTS", f"The file being created already exists: {path}")
        self.stored[path], self._changed[path] = call.raw, self._workspace.clock.now()
        return Answer(status=204)

    def _read(self, call: Call) -> Answer:
        path = self._place(call)
        if path not in self.stored:
            raise missing(f"The file being accessed is not found: {path}")
        content = self.stored[path]
        return Answer(content, headers={"Content-Type": "application/octet-stream", "Content-Length": str(len(content))})

    def _remove(self, call: Call) -> Answer:
        path = self._place(call)
        if path not in self.stored:
            raise missing(f"The file being accessed is not found: {path}")
        del self.stored[path]
        return Answer(status=204)

    def _make(self, call: Call) -> Answer:
        self.folders.add(self._place(call))
        return Answer(status=204)

    def _look(self, call: Call) -> Answer:
        self._there(self._place(call))
        return Answer(status=204)

    def _there(self, path: str) -> None:
        known = any(each == path or each.startswith(path + "/") for each in [*self.stored, *self.folders])
        if not known and path.count("/") > 4:
            raise missing(f"The directory being accessed is not found: {path}")

    def _remove_folder(self, call: Call) -> Answer:
        path = self._place(call)
        self._there(path)
        if any(each.startswith(path + "/") for each in [*self.stored, *self.folders]):
            raise invalid(f"The directory is not empty: {path}")
        self.folders.discard(path)
        return Answer(status=204)

    def _list(self, call: Call) -> Answer:
        path = self._place(call)
        self._there(path)
        prefix = path + "/"
        names = sorted({each[len(prefix) :].split("/")[0] for each in [*self.stored, *self.folders] if each.startswith(prefix)})
        return Answer({"contents": [self._entry(prefix + name) for name in names]})

    def _entry(self, path: str) -> dict[str, object]:
        name = path.rpartition("/")[2]
        if path not in self.stored:
            return {"path": path, "name": name, "is_directory": True}
        size, changed = len(self.stored[path]), self._changed.get(path, 0)
        return {"path": path, "name": name, "is_directory": False, "file_size": size, "last_modified": changed}

    def _place(self, call: Call) -> str:
        """The path of a file; its volume must exist."""
        path = "/" + call.params["path"].strip("/")
        parts = path.split("/")[1:]
        if parts[0] != "Volumes" or len(parts) < 4:
            raise invalid(f"Invalid path: {path}: files lie below /Volumes/<catalog>/<schema>/<volume>")
        if ".".join(parts[1:4]) not in self._workspace.volumes:
            raise missing(f"Volume '{'.'.join(parts[1:4])}' does not exist.")
        return path
