"""What a target keeps in the workspace: the state of its deployment, archives of deployed files, and the lock of a running deployment.

The state is `<state_path>/lakelet.json`, written as a whole and read by every command that needs the id of a resource. Before anything is
made in the workspace it says what is about to be made. The archives hold contents for a rollback; each is named by what is in it. The
lock is a file that only one process can make: one deployment at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.base.text import seconds_text
from lakelet.deploy.desired_state import ResourceKey, User, Workspace
from lakelet.deploy.workspace_objects import delete_path, make_file, make_folder, read_file, write_file

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client

FORMAT = 1
_TEXT_FIELDS = ("deployment_id", "bundle", "target", "serial", "previous", "deployed_at", "deployed_by")
STATE_FILE, HISTORY, OBJECTS = "lakelet.json", "deployments", "objects"


@dataclass(frozen=True)
class DeployedResource:
    """One resource in the workspace, as it was deployed.

    Attributes:
        id: its id there: of a pipeline, job or dashboard; the full name of a schema or volume.
        settings: what was asked for, permissions included; references as text, secrets masked.
        references: the ids that stood for the references.
        found: what the workspace said of it afterwards, long texts as digests, secrets masked: the measure of what others change.
        prevent_destroy: whether it may only be deleted after the bundle allows it.
    """

    key: ResourceKey
    id: str
    settings: Mapping[str, Any]
    references: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)
    prevent_destroy: bool = False


@dataclass(frozen=True)
class DeployedFile:
    """One uploaded file. `remote`: its path in the workspace; `pack`: the object that holds its content for a rollback."""

    sha256: str
    size: int
    remote: str
    pack: str


@dataclass(frozen=True)
class PendingResource:
    """What is about to be made of one resource: found by the next deployment where this one died. `create`: it has no id yet."""

    settings: Mapping[str, Any]
    create: bool


@dataclass(frozen=True)
class PendingDeployment:
    """A deployment that has begun and not ended.

    Attributes:
        operation, user, since: the command, who gave it, and when (ISO 8601, UTC).
        resources, files: what is about to be written; files that are about to be removed, too.
        superseded: paths in the workspace that are about to be removed because their file gets another one.
    """

    operation: str
    user: str
    since: str
    resources: Mapping[ResourceKey, PendingResource]
    files: Mapping[str, DeployedFile]
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeploymentState:
    """All that was deployed to one target, and what is not finished.

    Attributes:
        deployment_id: identifies the target's deployments from the first to `destroy`.
        serial: number of the last finished deployment, 0 before the first.
        previous: number of the deployment that a rollback returns to.
        deployed_at, deployed_by: when it ended (ISO 8601, UTC), and who did it.
        resources: by key; `.id` is the id in the workspace.
        files: by path below the bundle's folder.
        pending: a deployment that did not end.
    """

    deployment_id: str = ""
    bundle: str = ""
    target: str = ""
    serial: int = 0
    previous: int | None = None
    deployed_at: str = ""
    deployed_by: str = ""
    resources: Mapping[ResourceKey, DeployedResource] = field(default_factory=dict)
    files: Mapping[str, DeployedFile] = field(default_factory=dict)
    pending: PendingDeployment | None = None

    @property
    def ids(self) -> dict[ResourceKey, str]:
        """The ids of the resources in the workspace."""
        return {key: deployed.id for key, deployed in self.resources.items()}

    def with_resource(self, deployed: DeployedResource) -> DeploymentState:
        """The state with this resource added or replaced."""
        return replace(self, resources={**self.resources, deployed.key: deployed})

    def without_resources(self, *keys: ResourceKey) -> DeploymentState:
        """The state without these resources."""
        return replace(self, resources={key: value for key, value in self.resources.items() if key not in keys})


def load(client: Client, workspace: Workspace) -> DeploymentState:
    """Return the state of a target; an empty one (serial 0) where nothing was deployed.

    Raises FORMAT_UNKNOWN for a file of another format, DEPLOY_STATE for one that cannot be read.
    """
    return _read_state(client, state_file(workspace)) or DeploymentState()


def load_deployment(client: Client, workspace: Workspace, serial: int) -> DeploymentState | None:
    """The state as an earlier deployment left it; None where it is not kept any more."""
    return _read_state(client, history_file(workspace, serial))


def save(client: Client, workspace: Workspace, state: DeploymentState) -> None:
    """Write the state, over the stored one."""
    write_file(client, state_file(workspace), text_of(state).encode())


def state_file(workspace: Workspace) -> str:
    """Path of the state in the workspace."""
    return f"{workspace.state_path}/{STATE_FILE}"


def history_file(workspace: Workspace, serial: int) -> str:
    """Path of what is kept of one deployment."""
    return f"{workspace.state_path}/{HISTORY}/{serial:06d}.json"


def _read_state(client: Client, path: str) -> DeploymentState | None:
    content = read_file(client, path)
    if content is None:
        return None
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise unknown_format(path, document["format"], FORMAT, remedy="remove what is deployed with it, and deploy again.")
        return state_of(document)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        todo = "Put an earlier one in its place: a copy of each deployment lies in the folder `deployments` beside it."
        raise LakeletError("DEPLOY_STATE", f"{path} cannot be read", why=f"{type(problem).__name__}: {problem}", todo=todo) from problem


def text_of(state: DeploymentState) -> str:
    """The state as the text of its file: the same state gives the same text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        **{name: getattr(state, name) for name in _TEXT_FIELDS},
        "resources": {str(key): _without_key(deployed) for key, deployed in sorted(state.resources.items())},
        "files": {path: vars(file) for path, file in sorted(state.files.items())},
        "pending": None,
    }
    if state.pending:
        pending = state.pending
        document["pending"] = {
            **{name: getattr(pending, name) for name in ("operation", "user", "since")},
            "resources": {str(key): vars(intent) for key, intent in sorted(pending.resources.items())},
            "files": {path: vars(file) for path, file in sorted(pending.files.items())},
            "superseded": list(pending.superseded),
        }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _without_key(deployed: DeployedResource) -> dict[str, Any]:
    return {name: value for name, value in vars(deployed).items() if name != "key"}


def state_of(document: Mapping[str, Any]) -> DeploymentState:
    """The state of a file's JSON. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    pending = document["pending"]
    return DeploymentState(
        **{name: document[name] for name in _TEXT_FIELDS},
        resources={
            ResourceKey.parse(text): DeployedResource(ResourceKey.parse(text), **one) for text, one in document["resources"].items()
        },
        files={path: DeployedFile(**one) for path, one in document["files"].items()},
        pending=pending
        and PendingDeployment(
            **{name: pending[name] for name in ("operation", "user", "since")},
            resources={ResourceKey.parse(text): PendingResource(**one) for text, one in pending["resources"].items()},
            files={path: DeployedFile(**one) for path, one in pending["files"].items()},
            superseded=tuple(pending["superseded"]),
        ),
    )


_LARGEST_ARCHIVE = 8_000_000  # the workspace takes files of up to 10 MB
_ARCHIVE_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class FileArchive:
    """An archive of contents by their SHA-256: the same contents give the same bytes and the same name."""

    name: str
    content: bytes
    members: tuple[str, ...]


def archives_of(contents: Iterable[tuple[str, bytes]]) -> Iterator[FileArchive]:
    """Archives of these contents, given by SHA-256 in any order, each once."""
    pending: dict[str, bytes] = {}
    size = 0
    for sha256, content in sorted(dict(contents).items()):
        if pending and size + len(content) > _LARGEST_ARCHIVE:
            yield _archive(pending)
            pending, size = {}, 0
        pending[sha256] = content
        size += len(content)
    if pending:
        yield _archive(pending)


def _archive(contents: Mapping[str, bytes]) -> FileArchive:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for sha256, content in contents.items():
            archive.writestr(zipfile.ZipInfo(sha256, _ARCHIVE_TIME), content, zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    return FileArchive(f"{hashlib.sha256(content).hexdigest()}.pack", content, tuple(contents))


def archive_path(workspace: Workspace, name: str) -> str:
    """Path of an archive in the workspace."""
    return f"{workspace.state_path}/{OBJECTS}/{name}"


def kept_contents(client: Client, workspace: Workspace, places: Mapping[str, str]) -> dict[str, bytes]:
    """Contents by SHA-256, read from the archives. `places`: archive of each.

    Raises DEPLOY_STATE where one is not there or not what was kept.
    """
    found: dict[str, bytes] = {}
    for name in sorted(set(places.values())):
        content = read_file(client, archive_path(workspace, name))
        try:
            with zipfile.ZipFile(io.BytesIO(content or b"")) as archive:
                found.update({sha256: archive.read(sha256) for sha256, pack in places.items() if pack == name})
        except (zipfile.BadZipFile, KeyError) as problem:
            what = f"{archive_path(workspace, name)} does not hold what was deployed"
            raise LakeletError("DEPLOY_STATE", what, why=str(problem), todo="Check out that version and deploy it.") from problem
    if any(hashlib.sha256(content).hexdigest() != sha256 for sha256, content in found.items()):
        raise LakeletError(
            "DEPLOY_STATE", "contents that were kept for a rollback were changed", todo="Check out that version and deploy it."
        )
    return found


LOCK_FILE = "deploy.lock"


@dataclass(frozen=True)
class LockHolder:
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
class DeploymentLock:
    """The lock of one target, while a deployment has it."""

    client: Client
    path: str
    holder: LockHolder

    def check(self) -> None:
        """Raise DEPLOY_LOCKED if somebody has taken the lock over."""
        now = _read_lock(self.client, self.path)
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
) -> Iterator[DeploymentLock]:
    """Hold the lock of a target.

    A lock of a process of this machine that has ended is taken over, any other one with `force`. Raises DEPLOY_LOCKED, with the holder
    and the age, where somebody else has it.
    """
    path = f"{workspace.state_path}/{LOCK_FILE}"
    mine = _this_process(user, operation)
    make_folder(client, workspace.state_path)
    content = json.dumps(asdict(mine), indent=1).encode()
    while not make_file(client, path, content):
        other = _read_lock(client, path)
        if other is None:
            continue
        if other.id == mine.id:  # the first answer was lost
            break
        _refuse_running_holder(other, force, notice)
        write_file(client, path, content)
        break
    lock = DeploymentLock(client, path, mine)
    lock.check()
    reached("deploy.locked")
    try:
        yield lock
    finally:
        with suppress(LakeletError):  # the workspace is gone: the next deployment of this machine takes the lock over
            now = _read_lock(client, path)
            if now and now.id == mine.id:
                delete_path(client, path)


def holder_of(client: Client, workspace: Workspace) -> LockHolder | None:
    """Return the running deployment to a target; None where there is none."""
    return _read_lock(client, f"{workspace.state_path}/{LOCK_FILE}")


def _refuse_running_holder(other: LockHolder, force: bool, notice: Callable[[str], None]) -> None:
    who = other.described(datetime.now(timezone.utc))
    if force:
        notice(f"The lock is taken over from {who}")
    elif _has_ended(other):
        notice(f"The lock is taken over from a process that has ended: {who}")
    else:
        todo = "Wait for its end. If it has died there: lakelet deploy --force-lock"
        raise LakeletError("DEPLOY_LOCKED", f"this target is locked by {who}", todo=todo)


def _this_process(user: User, operation: str) -> LockHolder:
    import psutil

    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    started = psutil.Process().create_time()
    return LockHolder(uuid.uuid4().hex, user.user_name, socket.gethostname(), os.getpid(), started, since, operation)


def _has_ended(holder: LockHolder) -> bool:
    """Whether the process of the lock has ended for certain. One of another machine cannot be checked."""
    import psutil

    if holder.machine != socket.gethostname():
        return False
    try:
        process = psutil.Process(holder.pid)
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - holder.process_started) >= 2
    except psutil.NoSuchProcess:
        return True


def _read_lock(client: Client, path: str) -> LockHolder | None:
    content = read_file(client, path)
    if content is None:
        return None
    try:
        return LockHolder(**json.loads(content))
    except (ValueError, TypeError):
        return LockHolder("", "somebody", "an unknown machine", 0, 0.0, "1970-01-01T00:00:00+00:00", "of another version")
