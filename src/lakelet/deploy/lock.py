"""One deployment at a time: a file in the workspace that only one process can make."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.text import seconds_text
from lakelet.deploy.desired import User, Workspace
from lakelet.deploy.workspace_objects import delete_path, make_file, make_folder, read_file, write_file

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client

FILE = "deploy.lock"


@dataclass(frozen=True)
class Holder:
    """A running deployment. `since`: ISO 8601 in UTC; `process_started`: seconds since 1970, to detect that its process id was reused."""

    id: str
    user: str
    machine: str
    pid: int
    process_started: float
    since: str
    operation: str

    def described(self, now: datetime) -> str:
        """Return who holds the lock, and for how long."""
        age = max(0.0, (now - datetime.fromisoformat(self.since)).total_seconds())
        return f"{self.user} on {self.machine} (process {self.pid}) for {seconds_text(age)}: lakelet {self.operation}"


@dataclass(frozen=True)
class Lock:
    """The lock of one target, held."""

    client: Client
    path: str
    holder: Holder

    def check(self) -> None:
        """Raise DEPLOY_LOCKED if somebody has taken the lock over."""
        now = _read(self.client, self.path)
        if now is None or now.id != self.holder.id:
            whom = f"by {now.user} on {now.machine}" if now else "away"
            what = f"the lock of this deployment was taken {whom}: it stops here"
            raise LakeletError("DEPLOY_LOCKED", what, todo="When the other one has ended, deploy again: it goes on from here.")


@contextmanager
def locked(
    client: Client,
    workspace: Workspace,
    user: User,
    operation: str,
    *,
    force: bool = False,
    notice: Callable[[str], None] = lambda text: None,
) -> Iterator[Lock]:
    """Hold the lock of a target.

    A lock of a process of this machine that has ended is taken over, any other one with `force`. Raises DEPLOY_LOCKED, with the holder
    and the age, where somebody else has it.
    """
    path = f"{workspace.state_path}/{FILE}"
    mine = _this_process(user, operation)
    make_folder(client, workspace.state_path)
    content = json.dumps(asdict(mine), indent=1).encode()
    while not make_file(client, path, content):
        other = _read(client, path)
        if other is None:
            continue
        if other.id == mine.id:  # the first answer was lost
            break
        _refuse_living(other, force, notice)
        write_file(client, path, content)
        break
    lock = Lock(client, path, mine)
    lock.check()
    reached("deploy.locked")
    try:
        yield lock
    finally:
        with suppress(LakeletError):  # the workspace is gone: the next deployment of this machine takes the lock over
            now = _read(client, path)
            if now and now.id == mine.id:
                delete_path(client, path)


def holder_of(client: Client, workspace: Workspace) -> Holder | None:
    """Return the running deployment to a target; None where there is none."""
    return _read(client, f"{workspace.state_path}/{FILE}")


def _refuse_living(other: Holder, force: bool, notice: Callable[[str], None]) -> None:
    who = other.described(datetime.now(timezone.utc))
    if force:
        notice(f"The lock is taken over from {who}")
    elif _ended(other):
        notice(f"The lock is taken over from a process that has ended: {who}")
    else:
        todo = "Wait for its end. If it has died there: lakelet deploy --force-lock"
        raise LakeletError("DEPLOY_LOCKED", f"this target is locked by {who}", todo=todo)


def _this_process(user: User, operation: str) -> Holder:
    import psutil

    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    started = psutil.Process().create_time()
    return Holder(uuid.uuid4().hex, user.user_name, socket.gethostname(), os.getpid(), started, since, operation)


def _ended(holder: Holder) -> bool:
    """Whether the process of the lock has ended for certain. One of another machine cannot be looked at."""
    import psutil

    if holder.machine != socket.gethostname():
        return False
    try:
        process = psutil.Process(holder.pid)
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - holder.process_started) >= 2
    except psutil.NoSuchProcess:
        return True


def _read(client: Client, path: str) -> Holder | None:
    content = read_file(client, path)
    if content is None:
        return None
    try:
        return Holder(**json.loads(content))
    except (ValueError, TypeError):
        return Holder("", "somebody", "an unknown machine", 0, 0.0, "1970-01-01T00:00:00+00:00", "of another version")
