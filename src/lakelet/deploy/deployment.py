"""One deployment from reading the state to writing it: prepared without a lock, carried out with one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.deploy.apply import Deployment, carry_out
from lakelet.deploy.desired import Desired, ResourceKey, ResourceKind, SourceFile, User
from lakelet.deploy.lock import locked
from lakelet.deploy.looking import look, refuse_taken
from lakelet.deploy.plan import HOLDING_DATA, DeploymentPlan, Observed, named_resources, plan, refuse_conflicts, settled
from lakelet.deploy.remote import Api, apis
from lakelet.deploy.state import State, load

if TYPE_CHECKING:
    from lakelet.deploy.client import Client


@dataclass(frozen=True)
class Options:
    """Options of a deployment.

    Attributes:
        force: overwrite what others changed in the workspace.
        force_lock: take the lock over, whoever holds it.
        with_data: keys of resources that may be deleted with what they hold.
    """

    force: bool = False
    force_lock: bool = False
    with_data: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A deployment that could begin: what is wanted, what was deployed, what is there, and what to do."""

    desired: Desired
    state: State
    observed: Mapping[ResourceKey, Observed]
    plan: DeploymentPlan


def prepare(client: Client, desired: Desired, options: Options) -> Prepared:
    """Read the state and the workspace, and plan. Writes nothing.

    Raises DEPLOY_STATE for a state of another bundle or target, and what `plan` raises.
    """
    state = load(client, desired.workspace)
    return _prepared(client, apis(client, desired.workspace), desired, options, state)


def _prepared(client: Client, calls: Mapping[ResourceKind, Api], desired: Desired, options: Options, state: State) -> Prepared:
    if state.deployment_id and (state.bundle, state.target) != (desired.bundle, desired.target):
        what = f"{desired.workspace.state_path} holds a deployment of the bundle {state.bundle}, target {state.target}"
        todo = "Give each bundle and each target a workspace.root_path of its own."
        raise LakeletError("DEPLOY_STATE", what, why=f"this one is {desired.bundle}, target {desired.target}", todo=todo)
    state = state if state.deployment_id else replace(state, deployment_id=uuid.uuid4().hex)
    state, observed = look(calls, desired, state)
    state = settled(state, observed)
    return Prepared(desired, state, observed, plan(desired, state, observed, force=options.force, with_data=options.with_data))


def deploy(
    client: Client,
    prepared: Prepared,
    user: User,
    options: Options,
    *,
    contents: Callable[[SourceFile], bytes] = lambda file: file.local.read_bytes(),
    operation: str = "deploy",
    previous: int | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> Prepared:
    """Carry a prepared deployment out; return it with the plan that was followed and the state afterwards.

    Nothing is written where there is nothing to do. If somebody deployed since, it is prepared again under the lock.

    Args:
        contents: gives the bytes of a file that is wanted.
        operation: the command, as others see it in the lock.
        previous: the deployment that a rollback returns to afterwards; None for the one before.
        notice: called with a sentence about what is going on.

    Raises what `carry_out` and `prepare` raise, DEPLOY_DRIFT, DEPLOY_EXISTS, DEPLOY_LOCKED.
    """
    refuse_conflicts(prepared.plan)
    if prepared.plan.empty:
        return prepared
    desired, calls = prepared.desired, apis(client, prepared.desired.workspace)
    with locked(client, desired.workspace, user, operation, force=options.force_lock, notice=notice) as lock:
        prepared = _again(client, calls, prepared, options)
        if prepared.plan.empty:
            return prepared
        refuse_taken(calls, desired, (key for key in prepared.plan.creates if key.kind in HOLDING_DATA))
        state = prepared.state
        job = Deployment(
            client=client,
            apis=calls,
            user=user,
            lock=lock,
            desired=desired,
            state=state,
            observed=prepared.observed,
            plan=prepared.plan,
            contents=contents,
            named=named_resources(options.with_data, state),
            operation=operation,
            previous=previous if operation == "rollback" else (state.serial or None),
            notice=notice,
        )
        return replace(prepared, state=carry_out(job))


def _again(client: Client, calls: Mapping[ResourceKind, Api], prepared: Prepared, options: Options) -> Prepared:
    """The same under the lock; planned again if the state was written since."""
    state = load(client, prepared.desired.workspace)
    before = prepared.state
    if (state.serial, state.deployment_id or before.deployment_id, state.pending) == (before.serial, before.deployment_id, before.pending):
        return prepared
    again = _prepared(client, calls, prepared.desired, options, state)
    refuse_conflicts(again.plan)
    return again
