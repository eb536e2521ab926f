"""Changes of a deployment: decided from what is wanted, what was deployed and what the workspace holds. Pure: no network.

For each field of a resource three values meet: the bundle's, the one deployed last, and the workspace's. The bundle's change is made; what
others changed in the workspace since (drift) is shown and kept, unless it is forced back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.deploy.desired_state import DesiredState, Resource, ResourceKey, ResourceKind
from lakelet.deploy.resource_settings import PERMISSIONS, Path, as_found, fields, masked, path_text, resolved, shown, tree_from, tree_of
from lakelet.deploy.state import DeployedResource, DeploymentState

MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "MISSING", "__bool__": lambda self: False})()
_FIXED = {
    ResourceKind.SCHEMA: ("catalog_name", "name", "storage_root"),
    ResourceKind.VOLUME: ("catalog_name", "schema_name", "name", "volume_type", "storage_location"),
    ResourceKind.DASHBOARD: ("parent_path",),
}
"""Settings that a resource has for life."""

HOLDING_DATA = frozenset({ResourceKind.SCHEMA, ResourceKind.VOLUME})
"""Deleted only when they are named: what they hold goes with them."""


class LineKind(str, Enum):
    """Kinds of lines of a plan. The last three change nothing in the workspace."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    UPLOAD = "upload"
    REMOVE_FILE = "remove file"
    PUBLISH = "publish"
    PERMISSION = "permission"
    FINISH = "finish"
    CONFLICT = "conflict"
    DRIFT = "drift"
    KEEP = "keep"

    __str__ = str.__str__


_QUIET = frozenset({LineKind.DRIFT, LineKind.KEEP, LineKind.CONFLICT})


@dataclass(frozen=True)
class PlanLine:
    """One line of a plan.

    Attributes:
        action: what is done.
        resource: key of a resource (`pipelines.x`), or path of a file.
        field: the setting; None where the whole is meant.
        before, after: JSON values as they are shown: secrets redacted, long texts as their length. None where there is none.
    """

    action: LineKind
    resource: str
    field: str | None = None
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class ObservedResource:
    """A resource as the workspace describes it now.

    Attributes:
        tree: settings and permissions, as the workspace has them: never kept or shown as they are.
        version: changes whenever settings change; empty where the workspace has no such thing.
        published: of a dashboard whether readers can see it; None for any other.
    """

    id: str
    tree: Mapping[str, Any]
    version: str = ""
    published: bool | None = None


@dataclass(frozen=True)
class ResourceUpdate:
    """Update of a resource that exists. `kept`: fields whose values the workspace keeps."""

    settings: bool = False
    permissions: bool = False
    publish: bool = False
    kept: tuple[Path, ...] = ()


@dataclass(frozen=True)
class DeploymentPlan:
    """What to do, in the order of doing, and the lines that say so.

    Attributes:
        changes: one line each; drift and what is kept too.
        creates, deletes: resources; deletes in the order of deleting.
        updates: resources to be written, and fields to be kept of all that exist.
        uploads, removals: paths of files.
        gone: resources that others deleted and the bundle does not want any more: nothing to do but to forget them.
    """

    changes: tuple[PlanLine, ...] = ()
    creates: tuple[ResourceKey, ...] = ()
    updates: Mapping[ResourceKey, ResourceUpdate] = field(default_factory=dict)
    deletes: tuple[ResourceKey, ...] = ()
    uploads: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    gone: tuple[ResourceKey, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do; drift may be there."""
        return all(change.action in _QUIET for change in self.changes)


def plan(
    desired: DesiredState,
    state: DeploymentState,
    remote: Mapping[ResourceKey, ObservedResource],
    *,
    force: bool = False,
    with_data: Iterable[str] = (),
) -> DeploymentPlan:
    """Return what to do so that the workspace holds what is desired.

    Args:
        desired: what the bundle wants.
        state: what was deployed, resources found again included.
        remote: what the workspace holds of the state's resources; without those that are gone.
        force: whether drift is overwritten.
        with_data: keys of resources that may be deleted with what they hold.

    Raises:
        LakeletError: NOT_SUPPORTED_YET for `lifecycle.started`, CONFIG_INVALID for a setting that cannot be changed, DEPLOY_PREVENTED for
            a deletion that the last deployment forbade, DEPLOY_UNKNOWN for a wrong name in `with_data`.
    """
    _refuse_unsupported(desired)
    state = as_if_finished(state, remote)
    named = named_resources(with_data, state)
    wanted = {resource.key: resource for resource in desired.resources}
    ids = {key: id for key, id in state.ids.items() if key in remote}
    changes: list[PlanLine] = []
    updates: dict[ResourceKey, ResourceUpdate] = {}
    creates = [key for key in wanted if key not in ids]
    uploads, removals = _file_changes(desired, state, changes)
    for key, resource in wanted.items():
        if key not in ids:
            changes += _lines_of_creation(resource, state, ids)
            continue
        update, lines = _compared_resource(resource, state, remote[key], ids, force)
        _refuse_moves(resource, lines)
        updates[key] = update
        changes += lines
    deletes = _planned_deletes(state, wanted, remote, named, changes)
    gone = tuple(key for key in state.resources if key not in wanted and key not in remote)
    if state.pending or gone:
        changes.append(PlanLine(LineKind.FINISH, "deployment", None, state.pending.operation if state.pending else None, None))
    return DeploymentPlan(tuple(changes), tuple(creates), updates, deletes, uploads, removals, gone)


def refuse_conflicts(made: DeploymentPlan) -> None:
    """Raise DEPLOY_DRIFT where the bundle and somebody in the workspace changed the same setting, to different values."""
    errors: list[LakeletError] = []
    for change in made.changes:
        if change.action is LineKind.CONFLICT:
            now, wanted = _text(change.before), _text(change.after)
            what = f"{change.resource}: {change.field} was changed in the workspace to {now}, the bundle says {wanted}"
            todo = "Write the workspace's value into the bundle, or take the bundle's: lakelet deploy --force"
            errors.append(LakeletError("DEPLOY_DRIFT", what, todo=todo))
    if errors:
        raise errors[0] if len(errors) == 1 else DefinitionErrors(errors)


def _text(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def _refuse_unsupported(desired: DesiredState) -> None:
    for resource in desired.resources:
        if resource.start is not None:
            what = f"{resource.key}: `lifecycle: started` has no effect on a {resource.key.kind.word} here"
            raise LakeletError(
                "NOT_SUPPORTED_YET", what, where=resource.where, todo="Take it out; start updates with `lakelet run --remote`."
            )


def named_resources(with_data: Iterable[str], state: DeploymentState) -> frozenset[ResourceKey]:
    """The deployed resources that `--with-data` names. Raises DEPLOY_UNKNOWN for another name, or one of several."""
    found = set()
    for text in with_data:
        matching = [key for key in state.resources if text in (str(key), key.name)]
        if len(matching) != 1:
            what = f"--with-data {text} names {'several resources' if matching else 'nothing that was deployed'}"
            known = ", ".join(sorted(map(str, matching or state.resources))) or "nothing"
            raise LakeletError("DEPLOY_UNKNOWN", what, todo=f"Name one of: {known}")
        found.add(matching[0])
    return frozenset(found)


def _file_changes(desired: DesiredState, state: DeploymentState, changes: list[PlanLine]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    unsure = state.pending.files if state.pending else {}
    wanted = {file.path: file for file in desired.files}
    uploads = []
    for path, file in sorted(wanted.items()):
        old = state.files.get(path)
        if old is None or old.sha256 != file.sha256 or path in unsure:
            uploads.append(path)
            changes.append(PlanLine(LineKind.UPLOAD, path, None, None if old is None else old.sha256[:12], file.sha256[:12]))
    removals = sorted({*state.files, *unsure} - wanted.keys())
    known = {**unsure, **state.files}
    changes += [PlanLine(LineKind.REMOVE_FILE, path, None, known[path].sha256[:12], None) for path in removals]
    return tuple(uploads), tuple(removals)


def _lines_of_creation(resource: Resource, state: DeploymentState, ids: Mapping[ResourceKey, str]) -> list[PlanLine]:
    tree = masked(resolved(tree_of(resource), ids), state.deployment_id)
    before = "deleted in the workspace" if resource.key in state.resources else None
    lines = [PlanLine(LineKind.CREATE, str(resource.key), None, before, None)]
    for path, value in fields(tree).items():
        action = LineKind.PERMISSION if path[0] == PERMISSIONS else LineKind.CREATE
        lines.append(PlanLine(action, str(resource.key), path_text(path), None, shown(value, path[-1])))
    if resource.key.kind is ResourceKind.DASHBOARD:
        lines.append(PlanLine(LineKind.PUBLISH, str(resource.key)))
    return lines


def _refuse_moves(resource: Resource, lines: Iterable[PlanLine]) -> None:
    for line in lines:
        if line.action is LineKind.CHANGE and line.field in _FIXED.get(resource.key.kind, ()):
            what = f"{resource.key}: {line.field} cannot be changed from {line.before!r} to {line.after!r}"
            todo = "Give the new one another key in the bundle; the old one is then taken out."
            raise LakeletError("CONFIG_INVALID", what, where=resource.where, todo=todo)


@dataclass(frozen=True)
class _FieldValues:
    """The values of one field, each MISSING where there is none. `aim`: what is wanted, in the form of what is found."""

    wanted: Any
    aim: Any
    declared: Any
    found: Any
    now: Any


def _compared_resource(
    resource: Resource, state: DeploymentState, observed: ObservedResource, ids: Mapping[ResourceKey, str], force: bool
) -> tuple[ResourceUpdate, list[PlanLine]]:
    """What the deployment must write to one resource, and the lines of the plan."""
    salt, key = state.deployment_id, resource.key
    wanted = masked(resolved(tree_of(resource), ids), salt)
    now = fields(as_found(masked(observed.tree, salt)))
    rows = _values_by_field(wanted, now, state.resources[key])
    lines: list[PlanLine] = []
    kept: list[Path] = []
    writes: set[bool] = set()
    for path, row in sorted(rows.items()):
        action, after = _decision_for_field(row, force)
        if action is None:
            continue
        quiet = action in _QUIET
        if quiet:
            kept.append(path)
        else:
            writes.add(path[0] == PERMISSIONS)
            action = LineKind.PERMISSION if path[0] == PERMISSIONS else action
        before = row.now if row.now != row.found else row.declared
        lines.append(PlanLine(action, str(key), path_text(path), _shown_field(path, before), _shown_field(path, after)))
    unfinished = state.pending is not None and key in state.pending.resources
    publish = key.kind is ResourceKind.DASHBOARD and (observed.published is False or False in writes or unfinished)
    if publish:
        lines.append(PlanLine(LineKind.PUBLISH, str(key)))
    return ResourceUpdate(False in writes, True in writes, publish, tuple(kept)), lines


def _values_by_field(tree: Mapping[str, Any], now: Mapping[Path, Any], deployed: DeployedResource) -> dict[Path, _FieldValues]:
    """Every field with its values."""
    found = (fields(tree), fields(as_found(tree)), fields(_as_sent(deployed)), fields(deployed.found), now)
    return {
        path: _FieldValues(*(values.get(path, MISSING) for values in found))
        for path in dict.fromkeys(path for one in found for path in one)
    }


def _as_sent(deployed: DeployedResource) -> dict[str, Any]:
    return resolved(deployed.settings, {ResourceKey.parse(text): id for text, id in deployed.references.items()})


def as_if_finished(state: DeploymentState, remote: Mapping[ResourceKey, ObservedResource]) -> DeploymentState:
    """The state after a deployment that died, as if it had ended there: what it was about to make counts where the workspace has it.

    A field of the workspace is as it was before, or it is as it was meant, or somebody has changed it since.
    """
    for key, intent in (state.pending.resources if state.pending else {}).items():
        if key not in remote or key not in state.resources:
            continue
        deployed = state.resources[key]
        now = fields(as_found(masked(remote[key].tree, state.deployment_id)))
        rows = _values_by_field(resolved(intent.settings, state.ids), now, deployed)
        if not intent.create and not any(row.now != row.found for row in rows.values() if row.wanted != row.declared):
            continue  # nothing of it was written: whatever differs was changed by others
        declared, found = {}, {}
        for path, row in rows.items():
            meant, before = (row.wanted, row.now if MISSING in (row.aim, row.now) else row.aim), (row.declared, row.found)
            made = row.now != row.found
            if intent.create and path[0] == PERMISSIONS and row.now != row.aim:  # granted after it is made
                meant = before = (MISSING, row.now)
            declared[path], found[path] = meant if made or intent.create else before
        state = state.with_resource(replace(deployed, settings=_tree_of_present(declared), references={}, found=_tree_of_present(found)))
    return state


def _tree_of_present(values: Mapping[Path, Any]) -> dict[str, Any]:
    return tree_from({path: value for path, value in values.items() if value is not MISSING})


def _decision_for_field(row: _FieldValues, force: bool) -> tuple[LineKind | None, Any]:
    """What happens to one field, and its value afterwards."""
    drifted, changed = row.now != row.found, row.wanted != row.declared
    if not drifted:
        return (LineKind.CHANGE, row.wanted) if changed else (None, None)
    if row.now == row.aim:
        return None, None
    if force:
        return LineKind.CHANGE, row.found if row.wanted is MISSING and row.declared is MISSING else row.wanted
    return (LineKind.CONFLICT, row.wanted) if changed else (LineKind.DRIFT, row.found)


def _shown_field(path: Path, value: Any) -> Any:
    return None if value is MISSING else shown(value, path[-1])


def _planned_deletes(
    state: DeploymentState,
    wanted: Mapping[ResourceKey, Resource],
    remote: Mapping[ResourceKey, ObservedResource],
    named: frozenset[ResourceKey],
    changes: list[PlanLine],
) -> tuple[ResourceKey, ...]:
    """Resources to delete, users before what they use; lines for those and for what is kept because of its data."""
    deletes = []
    for key, deployed in sorted(state.resources.items(), key=lambda item: (list(ResourceKind).index(item[0].kind), item[0]), reverse=True):
        if key in wanted or key not in remote:
            continue
        data = "tables" if key.kind is ResourceKind.PIPELINE else "data" if key.kind in HOLDING_DATA else None
        if key.kind in HOLDING_DATA and key not in named:
            changes.append(PlanLine(LineKind.KEEP, str(key), data, deployed.id, deployed.id))
            continue
        if deployed.prevent_destroy:
            todo = "Deploy it once without `lifecycle: prevent_destroy: true` before it is taken out."
            raise LakeletError("DEPLOY_PREVENTED", f"{key} would be deleted, and lifecycle.prevent_destroy forbids it", todo=todo)
        deletes.append(key)
        changes.append(PlanLine(LineKind.DELETE, str(key), None, deployed.id, None))
        if data:
            changes.append(
                PlanLine(LineKind.DELETE if key in named else LineKind.KEEP, str(key), data, "kept", None if key in named else "kept")
            )
    return tuple(deletes)
