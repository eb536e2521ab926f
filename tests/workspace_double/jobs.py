"""Jobs and their runs over HTTP: `/api/2.2/jobs/...` (facts 1.2, 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.workspace_double import job_settings
from tests.workspace_double.permissions import visible
from tests.workspace_double.updates import Update
from tests.workspace_double.wire import Answer, Call, User, invalid, page, unmodelled

if TYPE_CHECKING:
    from tests.workspace_double.pipelines import Pipeline
    from tests.workspace_double.workspace import Workspace

_RUN_NOW = {"job_id", "idempotency_token", "job_parameters", "pipeline_params", "only", "performance_target", "queue"}


@dataclass
class Job:
    id: int
    creator: str
    settings: dict[str, Any]
    created: int


@dataclass
class Run:
    """One run. `updates`: those that its tasks started, by task. `result`: its `result_state`, None before its end."""

    id: int
    job_id: int
    number: int
    started: int
    creator: str
    token: str | None
    tasks: list[dict[str, Any]]
    updates: dict[str, tuple[Pipeline, Update]] = field(default_factory=dict)
    result: str | None = None
    message: str = ""
    ended: int = 0


class Jobs:
    """`stored`: jobs by id; `runs`: runs by id."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.stored: dict[int, Job] = {}
        self.runs: dict[int, Run] = {}
        self._ids = iter(range(900_000_000_001, 10**13, 17))
        root, add = "/api/2.2/jobs", workspace.routes.add
        add("POST", f"{root}/create", self._create)
        add("GET", f"{root}/get", self._get)
        add("GET", f"{root}/list", self._list)
        add("POST", f"{root}/reset", self._reset)
        add("POST", f"{root}/update", self._update)
        add("POST", f"{root}/delete", self._delete)
        add("POST", f"{root}/run-now", self._run_now)
        add("GET", f"{root}/runs/get", self._get_run)
        add("GET", f"{root}/runs/list", self._list_runs)
        add("POST", f"{root}/runs/cancel", self._cancel)

    def _find(self, call: Call, level: str) -> Job:
        """facts 1.4, special case: 400 with these words, which the SDK takes for ResourceDoesNotExist."""
        key = call.number("job_id", 0)
        if key not in self.stored:
            raise invalid(f"Job {key} does not exist.")
        self._workspace.permissions.require(call.user, "jobs", str(key), level)
        return self.stored[key]

    def _create(self, call: Call) -> Answer:
        job_settings.check(call.body)
        granted = self._workspace.permissions.read(call.body.get("access_control_list") or [], "jobs")
        key = next(self._ids)
        made = Job(key, call.user.name, job_settings.stored(call.body), self._workspace.clock.now())
        self.stored[key] = made
        self._workspace.permissions.created("jobs", str(key), call.user)
        own = self._workspace.permissions.grants["jobs", str(key)]
        if any(grant.level == "IS_OWNER" for grant in granted):
            own.clear()
        own += granted
        return Answer({"job_id": key})

    def _get(self, call: Call) -> Answer:
        return Answer(self._shown(self._find(call, "CAN_VIEW")))

    def _shown(self, job: Job) -> dict[str, Any]:
        runs_as = next(iter((job.settings.get("run_as") or {}).values()), job.creator)
        shown = {"job_id": job.id, "creator_user_name": job.creator, "run_as_user_name": runs_as}
        return {**shown, "created_time": job.created, "settings": job.settings}

    def _list(self, call: Call) -> Answer:
        """SDK docstring: `name` is exact but for case; tasks only with `expand_tasks`; 20 jobs a page, 100 at most."""
        keys = visible(self._workspace.permissions, call.user, "jobs", [str(key) for key in sorted(self.stored, reverse=True)])
        chosen = [self.stored[int(key)] for key in keys]
        if name := call.query.get("name"):
            chosen = [job for job in chosen if job.settings.get("name", "").lower() == name.lower()]
        shown, after, before = page(chosen, call, size_key="limit", default=20, most=100)
        entries = [self._shown(job) for job in shown]
        if not call.flag("expand_tasks"):
            hidden = ("tasks", "job_clusters", "environments", "parameters")
            entries = [each | {"settings": {k: v for k, v in each["settings"].items() if k not in hidden}} for each in entries]
        tokens = {key: token for key, token in {"next_page_token": after, "prev_page_token": before}.items() if token}
        return Answer({"jobs": entries, "has_more": bool(after)} | tokens)

    def _reset(self, call: Call) -> Answer:
        """All settings are replaced."""
        call.only({"job_id", "new_settings"}, "ResetJob")
        job = self._find(call, "CAN_MANAGE")
        if not isinstance(call.body.get("new_settings"), dict):
            raise invalid("Missing required field: new_settings")
        job_settings.check(call.body["new_settings"])
        job.settings = job_settings.stored(call.body["new_settings"])
        return Answer()

    def _update(self, call: Call) -> Answer:
        """SDK docstring: top-level fields are replaced, tasks and clusters merged by key; `fields_to_remove` by name."""
        call.only({"job_id", "new_settings", "fields_to_remove"}, "UpdateJob")
        job, new = self._find(call, "CAN_MANAGE"), dict(call.body.get("new_settings") or {})
        merged = dict(job.settings)
        for name in call.body.get("fields_to_remove") or []:
            if "/" in name:
                raise unmodelled("the removal of a field within a field")
            merged.pop(name, None)
        if "tasks" in new:
            tasks = {task["task_key"]: task for task in merged.get("tasks") or []}
            new["tasks"] = list((tasks | {task["task_key"]: task for task in new["tasks"]}).values())
        merged.update(new)
        job_settings.check(merged)
        job.settings = job_settings.stored(merged)
        return Answer()

    def _delete(self, call: Call) -> Answer:
        call.only({"job_id"}, "DeleteJob")
        job = self._find(call, "IS_OWNER" if not call.user.admin else "CAN_MANAGE")
        del self.stored[job.id]
        self._workspace.permissions.deleted("jobs", str(job.id))
        return Answer()

    def _run_now(self, call: Call) -> Answer:
        """SDK docstring: a token that was used before gives the run that it made, and starts nothing."""
        call.only(_RUN_NOW, "RunNow")
        job, token = self._find(call, "CAN_MANAGE_RUN"), call.body.get("idempotency_token")
        of_job = [run for run in self.runs.values() if run.job_id == job.id]
        known = next((run for run in of_job if token and run.token == token), None)
        if known is None:
            now, tasks = self._workspace.clock.now(), [dict(task) for task in job.settings.get("tasks") or []]
            known = Run(next(self._ids), job.id, len(of_job) + 1, now, call.user.name, token, tasks)
            self.runs[known.id] = known
            self._start(known, call.user)
        return Answer({"run_id": known.id, "number_in_job": known.number})

    def _start(self, run: Run, user: User) -> None:
        """Start what is ready: each task whose pipeline is free. A pipeline in use fails the task."""
        for task in run.tasks:
            settings: Mapping[str, Any] = task.get("pipeline_task") or {}
            pipeline = self._workspace.pipelines.get(settings.get("pipeline_id", ""))
            if pipeline is None or task["task_key"] in run.updates:
                continue
            if pipeline.active:
                run.result, run.message = "FAILED", f"Pipeline {pipeline.id} is already running."
                return
            body = {key: value for key, value in settings.items() if key != "pipeline_id"}
            update = self._workspace.pipeline_routes.updates.start(pipeline, body, "JOB_TASK", user)
            run.updates[task["task_key"]] = (pipeline, update)

    def _polled(self, run: Run) -> None:
        """The run goes on with its updates; one without any is over at the first look (facts 1.4: waiters)."""
        for pipeline, update in run.updates.values():
            if update.active:
                self._workspace.pipeline_routes.updates.polled(pipeline)
        states = [update.state for _, update in run.updates.values()]
        if run.result is None and not any(update.active for _, update in run.updates.values()):
            run.result = "FAILED" if "FAILED" in states else "CANCELED" if "CANCELED" in states else "SUCCESS"
            run.message = next((u.failure for _, u in run.updates.values() if u.failure), None) or ""
            run.ended = self._workspace.clock.now()

    def _run(self, call: Call, level: str) -> Run:
        key = call.number("run_id", 0)
        if key not in self.runs:
            raise invalid(f"Run {key} does not exist.")
        self._workspace.permissions.require(call.user, "jobs", str(self.runs[key].job_id), level)
        return self.runs[key]

    def _get_run(self, call: Call) -> Answer:
        run = self._run(call, "CAN_VIEW")
        self._polled(run)
        return Answer(_shown_run(run, self._workspace.url))

    def _list_runs(self, call: Call) -> Answer:
        """SDK docstring: the newest first; `active_only` and `completed_only` exclude each other."""
        active, completed = call.flag("active_only"), call.flag("completed_only")
        if active and completed:
            raise invalid("active_only and completed_only cannot both be true.")
        chosen = sorted(self.runs.values(), key=lambda run: run.started, reverse=True)
        if "job_id" in call.query:
            chosen = [run for run in chosen if run.job_id == call.number("job_id", 0)]
        if active or completed:
            chosen = [run for run in chosen if (run.result is None) == active]
        shown, after, before = page(chosen, call, size_key="limit", default=20, most=25)
        tokens = {key: token for key, token in {"next_page_token": after, "prev_page_token": before}.items() if token}
        return Answer({"runs": [_shown_run(run, self._workspace.url) for run in shown], "has_more": bool(after)} | tokens)

    def _cancel(self, call: Call) -> Answer:
        call.only({"run_id"}, "CancelRun")
        run = self._run(call, "CAN_MANAGE_RUN")
        for pipeline, update in run.updates.values():
            if update.active:
                self._workspace.pipeline_routes.updates.cancel(pipeline, call.user)
        if run.result is None:
            run.result, run.ended = "CANCELED", self._workspace.clock.now()
        return Answer()


def _shown_run(run: Run, url: str) -> dict[str, Any]:
    state = {"life_cycle_state": "RUNNING", "state_message": run.message}
    if run.result:
        over = "INTERNAL_ERROR" if run.result == "FAILED" else "TERMINATED"
        state |= {"life_cycle_state": over, "result_state": run.result}
    tasks = [{**task, "state": state, "run_id": run.id + 1 + place} for place, task in enumerate(run.tasks)]
    shown = {"run_id": run.id, "job_id": run.job_id, "number_in_job": run.number, "state": state, "start_time": run.started}
    shown |= {
        "creator_user_name": run.creator,
        "tasks": tasks,
        "run_page_url": f"{url}/#job/{run.job_id}/run/{run.id}",
        "end_time": run.ended,
    }
    return {**shown, "run_type": "JOB_RUN", "trigger": "ONE_TIME"}
