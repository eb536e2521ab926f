"""Facts from Git: `${bundle.git.branch}` and the like. Read from its files, so that no `git` is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.redaction import redacted

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ORIGIN = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_PASSWORD = re.compile(r"//[^/@]*@")  # a token may stand before the host


@dataclass(frozen=True)
class Checkout:
    """The branch that is checked out, its commit, the address of the remote `origin`; None where Git does not know."""

    branch: str | None = None
    commit: str | None = None
    origin_url: str | None = None


def checkout(folder: Path) -> Checkout:
    """The state of the repository that a folder lies in; nothing outside of one."""
    git = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if git is not None and git.is_file():  # a worktree or a submodule
        git = (git.parent / _read(git).removeprefix("gitdir:").strip()).resolve()
    head = _read(git / "HEAD") if git is not None else ""
    if git is None:
        return Checkout()
    shared = (git / _read(git / "commondir")).resolve() if (git / "commondir").is_file() else git
    remote = _ORIGIN.search(_read(shared / "config"))
    origin = redacted(_PASSWORD.sub("//", remote[1])) if remote else None
    if not head.startswith("ref:"):
        return Checkout(None, head if _COMMIT.fullmatch(head) else None, origin)
    ref = head.removeprefix("ref:").strip()
    packed = {name: commit for commit, _, name in (line.partition(" ") for line in _read(shared / "packed-refs").splitlines())}
    commit = _read(git / ref) or _read(shared / ref) or packed.get(ref, "")
    return Checkout(ref.removeprefix("refs/heads/"), commit if _COMMIT.fullmatch(commit) else None, origin)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
