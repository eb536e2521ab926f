"""What Git says of the project: `${bundle.git.branch}` and `${bundle.git.commit}`. Read from its files, so that no `git` is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Checkout:
    """The branch that is checked out, None without one, and its commit; None where Git does not know."""

    branch: str | None = None
    commit: str | None = None


def checkout(folder: Path) -> Checkout:
    """The state of the repository that a folder lies in; nothing outside of one."""
    git = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if git is not None and git.is_file():  # a worktree or a submodule
        git = (git.parent / _read(git).removeprefix("gitdir:").strip()).resolve()
    head = _read(git / "HEAD") if git is not None else ""
    if git is None or not head.startswith("ref:"):
        return Checkout(None, head if _COMMIT.fullmatch(head) else None)
    ref = head.removeprefix("ref:").strip()
    shared = (git / _read(git / "commondir")).resolve() if (git / "commondir").is_file() else git
    packed = {name: commit for commit, _, name in (line.partition(" ") for line in _read(shared / "packed-refs").splitlines())}
    commit = _read(git / ref) or _read(shared / ref) or packed.get(ref, "")
    return Checkout(ref.removeprefix("refs/heads/"), commit if _COMMIT.fullmatch(commit) else None)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
