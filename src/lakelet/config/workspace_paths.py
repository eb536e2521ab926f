"""Paths of a workspace that mean files of the repository: `/Workspace/Users/jo/shop/conf/a.json` is `conf/a.json` of the project `shop`.

On Databricks the files of a repository lie below a folder of the workspace: a Git folder (`/Repos/…`, `/Workspace/Repos/…`), a user's
folder, or `files` of a deployed bundle. Code names them by the whole path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

ROOTS = ("/Workspace", "/Repos")
"""Folders of the machine, on Databricks, in which paths of a workspace lie."""
_OLD_ROOTS = ("/Users/", "/Shared/")
_DEPLOYED = "files"


def is_of_workspace(path: str) -> bool:
    """Whether a path lies in a workspace."""
    return path.removeprefix("file:").startswith(tuple(f"{root}/" for root in ROOTS))


def by_tail(path: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Where a path of the workspace may lie below `roots`, the longest tail first."""
    parts = [part for part in path.removeprefix("file:").split("/") if part]
    for at in range(len(parts)):
        for root in roots:
            yield root.joinpath(*parts[at:])
            if root.name == parts[at]:
                yield root.joinpath(*parts[at + 1 :])


def in_workspace(path: str) -> str:
    """The path of a library as a path of the workspace: `/Users/…` was the spelling before `/Workspace/Users/…`."""
    return f"/Workspace{path}" if path.startswith(_OLD_ROOTS) else path


def in_repository(path: str, roots: Sequence[Path], suffixes: Sequence[str] = ("",)) -> Path | None:
    """The file or folder of the repository that a path of the workspace means; None if there is none.

    The last part alone does not say which file is meant, except below the root of the repository or of a deployment.
    `suffixes`: what may stand behind the path here; notebooks have none in a workspace.
    """
    parts = [part for part in path.removeprefix("file:").split("/") if part]
    if not is_of_workspace(path) or ".." in parts:
        return None
    for at in range(1, len(parts)):
        for root in roots:
            below_root = parts[at - 1] in (root.name, _DEPLOYED)
            whole = root.joinpath(*parts[at:])
            found = next((one for suffix in suffixes if (one := whole.with_name(whole.name + suffix)).exists()), None)
            if found is not None and (below_root or at < len(parts) - 1):
                return found
    return next((root for root in roots if parts[-1] == root.name), None)
