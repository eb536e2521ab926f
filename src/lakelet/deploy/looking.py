"""Reads a deployment's resources from the workspace, in parallel, and finds those of an earlier deployment that died."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired import Desired, ResourceKey, ResourceKind
from lakelet.deploy.permissions import has_permissions, read_permissions
from lakelet.deploy.plan import Observed
from lakelet.deploy.remote import Api, Birth
from lakelet.deploy.settings import in_order, resolved, tree_of
from lakelet.deploy.state import Deployed, State

THREADS = 8
_CLOCKS_DIFFER = 600_000
"""Milliseconds by which this machine's clock and the workspace's may differ."""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(call: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results of `call` for each item, at most THREADS at the same time. After an error no further call begins; the first is raised."""
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def look(apis: Mapping[ResourceKind, Api], desired: Desired, state: State) -> tuple[State, dict[ResourceKey, Observed]]:
    """Return the state with the resources that a dead deployment made, and what the workspace holds of all of them."""
    granted = {resource.key for resource in desired.resources if resource.permissions}
    state = _with_found(apis, desired, state)

    def read(deployed: Deployed) -> Observed | None:
        asked = deployed.key in granted or has_permissions(deployed.settings)
        return observe(apis[deployed.key.kind], deployed.key, deployed.id, permissions=asked)

    observed = in_parallel(read, state.resources.values())
    return state, {one.key: seen for one, seen in zip(state.resources.values(), observed, strict=True) if seen is not None}


def observe(api: Api, key: ResourceKey, id: str, *, permissions: bool) -> Observed | None:
    """One resource as it is, with its permissions where they are asked for; None where there is none."""
    seen = api.read(id)
    return replace(seen, tree={**seen.tree, **read_permissions(api, key.kind, id)}) if seen and permissions else seen


def _with_found(apis: Mapping[ResourceKind, Api], desired: Desired, state: State) -> State:
    """The state with the ids of resources that were about to be made when a deployment died, if they were made."""
    pending = state.pending
    if pending is None:
        return state
    birth = Birth(pending.user, int(datetime.fromisoformat(pending.since).timestamp() * 1000) - _CLOCKS_DIFFER)
    waiting = {key: intent for key, intent in pending.resources.items() if intent.create and key not in state.resources}
    order = [resource.key for resource in in_order(desired.resources)]
    for key in sorted(waiting, key=lambda key: (order.index(key) if key in order else len(order), key)):
        intent = waiting[key]
        settings = resolved(intent.settings, state.ids)
        claimed = {one.id for one in state.resources.values() if one.key.kind is key.kind}
        id = apis[key.kind].find(settings, claimed, birth)
        if id is not None:
            state = state.with_resource(Deployed(key, id, {}))
    return state


def refuse_taken(apis: Mapping[ResourceKind, Api], desired: Desired, creates: Iterable[ResourceKey]) -> None:
    """Raise DEPLOY_EXISTS if a schema or volume that is to be made is there already."""
    wanted = {resource.key: resource for resource in desired.resources}
    for key in creates:
        api = apis[key.kind]
        name = api.full_name(tree_of(wanted[key]))
        if name is not None and api.read(name) is not None:
            what = f"{key}: the {key.kind.word} {name} is there already, and this bundle did not make it"
            todo = "Take it out of the bundle: pipelines write to it as it is. Or delete it in the workspace."
            raise LakeletError("DEPLOY_EXISTS", what, where=wanted[key].where, todo=todo)
