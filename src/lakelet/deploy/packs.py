"""Contents of deployed files, kept in the workspace for a rollback: a few archives, named by what is in them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired import Workspace
from lakelet.deploy.state import OBJECTS
from lakelet.deploy.workspace_files import read_file

if TYPE_CHECKING:
    from lakelet.deploy.client import Client

_LARGEST = 8_000_000  # the workspace takes files of up to 10 MB
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Pack:
    """An archive of contents by their SHA-256: the same contents give the same bytes and the same name."""

    name: str
    content: bytes
    members: tuple[str, ...]


def packed(contents: Iterable[tuple[str, bytes]]) -> Iterator[Pack]:
    """Archives of these contents, given by SHA-256 in any order, each once."""
    waiting: dict[str, bytes] = {}
    size = 0
    for sha256, content in sorted(dict(contents).items()):
        if waiting and size + len(content) > _LARGEST:
            yield _pack(waiting)
            waiting, size = {}, 0
        waiting[sha256] = content
        size += len(content)
    if waiting:
        yield _pack(waiting)


def _pack(contents: Mapping[str, bytes]) -> Pack:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for sha256, content in contents.items():
            archive.writestr(zipfile.ZipInfo(sha256, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    return Pack(f"{hashlib.sha256(content).hexdigest()}.pack", content, tuple(contents))


def pack_path(workspace: Workspace, name: str) -> str:
    """Path of an archive in the workspace."""
    return f"{workspace.state_path}/{OBJECTS}/{name}"


def kept_contents(client: Client, workspace: Workspace, places: Mapping[str, str]) -> dict[str, bytes]:
    """Contents by SHA-256, read from the archives. `places`: archive of each.

    Raises DEPLOY_STATE where one is not there or not what was kept.
    """
    found: dict[str, bytes] = {}
    for name in sorted(set(places.values())):
        content = read_file(client, pack_path(workspace, name))
        try:
            with zipfile.ZipFile(io.BytesIO(content or b"")) as archive:
                found.update({sha256: archive.read(sha256) for sha256, pack in places.items() if pack == name})
        except (zipfile.BadZipFile, KeyError) as problem:
            what = f"{pack_path(workspace, name)} does not hold what was deployed"
            raise LakeletError("DEPLOY_STATE", what, why=str(problem), todo="Check out that version and deploy it.") from problem
    if any(hashlib.sha256(content).hexdigest() != sha256 for sha256, content in found.items()):
        raise LakeletError(
            "DEPLOY_STATE", "contents that were kept for a rollback were changed", todo="Check out that version and deploy it."
        )
    return found
