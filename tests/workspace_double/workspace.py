"""A Databricks workspace on loopback, for tests: what a test puts in, sees and breaks."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal

from tests.workspace_double.catalog import Catalog
from tests.workspace_double.clock import Clock
from tests.workspace_double.dashboards import Dashboard, Dashboards
from tests.workspace_double.events import Events
from tests.workspace_double.faults import Fault, Faults, Hook
from tests.workspace_double.grants import Grants
from tests.workspace_double.identity import Identity
from tests.workspace_double.jobs import Job, Jobs, Run
from tests.workspace_double.oauth import OAuth
from tests.workspace_double.objects import Objects
from tests.workspace_double.permissions import Permissions
from tests.workspace_double.pipelines import Pipeline, Pipelines
from tests.workspace_double.routes import Routes
from tests.workspace_double.scripts import Item
from tests.workspace_double.server import Server, start
from tests.workspace_double.tree import Files, absolute
from tests.workspace_double.volume_files import VolumeFiles
from tests.workspace_double.warehouses import Warehouses
from tests.workspace_double.wire import Request


class Workspace:
    """The workspace of one test: `with Workspace() as w: ... WorkspaceClient(host=w.url, token=w.token)`.

    Attributes:
        url, token, user_name: where it listens; the token and the name of its first user, an admin.
        requests: every request in the order in which it arrived; `writes` those that changed something.
        files: the workspace's files and notebooks, path to bytes; writing to it is a change by hand.
        folders: its folders.
        pipelines, dashboards, jobs, runs, schemas, volumes: what is there, by id or full name.
        volume_contents: files of volumes by path.
        events: events of each pipeline by its id, as the REST answer holds them.
        privileges: those of Unity Catalog by kind (`schema`, `volume` …) and full name, principal to privileges.
        catalogs: names of the catalogs; a test adds its own.
        tables: tables by full name: Arrow tables or lists of objects; SQL reads them. `table_owners`: table to pipeline id.
        stages_per_poll: how many stages an update goes on when somebody looks at it. 0: only `advance` moves it.
        events_per_page: events on a page without `max_results`.
        warehouse_id: of a running SQL warehouse called `Shared warehouse`; `warehouses` all of them, by id.
        rows_per_chunk: rows in each chunk of a result; looks_per_statement: how many looks a statement takes until it is done.
        metrics_over_rest: whether the REST answer holds events of level METRICS; False: only SQL's `event_log(...)` does.
        imports_dashboards: a file imported as `*.lvdash.json` with the format AUTO becomes a dashboard.
        late_dashboards: the first GET of a new dashboard is 404 (facts 1.6: eventual consistency).
        check_sources: an update fails if a source of its pipeline matches no file of the workspace.
        crashes: tracebacks of handlers that crashed: an error of the double itself.
    """

    def __init__(self, user_name: str = "dev.user@example.com") -> None:
        self.user_name = user_name
        self.lock, self._log = threading.RLock(), threading.Lock()
        self.clock, self.routes, self._faults = Clock(), Routes(), Faults()
        self.requests: list[Request] = []
        self.crashes: list[str] = []
        self.tables: dict[str, Any] = {}
        self.table_owners: dict[str, str] = {}
        self.stages_per_poll = 1
        self.events_per_page, self.rows_per_chunk, self.looks_per_statement = 250, 10_000, 0
        self.late_dashboards = self.check_sources = False
        self.metrics_over_rest = self.imports_dashboards = True
        self.identity, self.permissions = Identity(self, user_name), Permissions(self)
        self.token, self.oauth = self.identity.main, OAuth(self)
        self.objects, self.volume_files = Objects(self), VolumeFiles(self)
        self.event_store, self.pipeline_routes, self.job_routes = Events(self), Pipelines(self), Jobs(self)
        self.dashboard_routes, self.catalog, self.warehouse_routes = Dashboards(self), Catalog(self), Warehouses(self)
        self.warehouse_id = self.warehouse_routes.add("Shared warehouse")
        self.catalog_grants, self.files = Grants(self), Files(self.objects.tree)
        self.objects.make_folder(f"/Users/{user_name}", self.identity.user(f"Bearer {self.token}"))
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Workspace:
        self._server, self._thread = start(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._server
        assert self._thread
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self.crashes and error is None:
            raise AssertionError("the workspace double crashed:\n" + "\n".join(self.crashes))

    @property
    def url(self) -> str:
        assert self._server, "not started: with Workspace() as w"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        return self.pipeline_routes.stored

    @property
    def dashboards(self) -> dict[str, Dashboard]:
        return self.dashboard_routes.stored

    @property
    def jobs(self) -> dict[int, Job]:
        return self.job_routes.stored

    @property
    def runs(self) -> dict[int, Run]:
        return self.job_routes.runs

    @property
    def warehouses(self) -> dict[str, dict[str, Any]]:
        return self.warehouse_routes.stored

    @property
    def schemas(self) -> dict[str, dict[str, Any]]:
        return self.catalog.schemas

    @property
    def volumes(self) -> dict[str, dict[str, Any]]:
        return self.catalog.volumes

    @property
    def privileges(self) -> dict[tuple[str, str], dict[str, set[str]]]:
        return self.catalog_grants.privileges

    @property
    def volume_contents(self) -> dict[str, bytes]:
        return self.volume_files.stored

    @property
    def catalogs(self) -> set[str]:
        return self.catalog.names

    @property
    def events(self) -> dict[str, list[dict[str, Any]]]:
        return self.event_store.by_pipeline

    @property
    def folders(self) -> list[str]:
        return [path for path, node in sorted(self.objects.tree.nodes.items()) if node.type == "DIRECTORY"]

    @property
    def writes(self) -> list[Request]:
        """Requests that changed something: a handler acted on them without an error, whether or not its answer arrived."""
        return [request for request in self.requests if request.succeeded and not request.reads]

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find it."""
        return {"DATABRICKS_HOST": self.url, "DATABRICKS_TOKEN": self.token}

    def add_user(self, name: str, *, admin: bool = False, service_principal: bool = False) -> str:
        """A token of another user, with a home folder. Without `admin` the user may do only what was granted."""
        token = self.identity.add(name, admin=admin, service_principal=service_principal)
        with self.lock:
            self.objects.make_folder(f"/Users/{name}", self.identity.user(f"Bearer {token}"))
        return token

    def expire_token(self, token: str | None = None) -> None:
        """From now on this token, the first user's by default, is answered with 401."""
        self.identity.expire(token or self.token)

    def fail(
        self,
        method: str,
        path: str,
        *,
        times: int = 1,
        skip: int = 0,
        status: int | None = None,
        error_code: str | None = None,
        message: str | None = None,
        retry_after: float | None = None,
        drop: Literal["before", "after"] | None = None,
        delay: float = 0,
        acted: bool = False,
    ) -> Fault:
        """Let requests go wrong.

        Args:
            method, path: which requests; `*` stands for anything.
            times: how many of them; `skip`: how many pass first.
            status: answered with this error, before acting; with `acted`, after.
            retry_after: the header `Retry-After`, in seconds.
            drop: the connection is closed without an answer, before or after the server acted.
            delay: seconds before anything happens; alone, the request is only slow.

        Returns:
            The rule; its `hits` says how often it was applied.
        """
        if status is None and drop is None and not delay:
            raise ValueError("what should go wrong: status, drop or delay?")
        fault = Fault(method, path, times, skip, status, error_code, message, retry_after, drop, delay, acted)
        self._faults.rules.append(fault)
        return fault

    def chaos(self, seed: int, *, rate: float = 0.2, kinds: Sequence[str] = ("before", "after", "429", "503")) -> None:
        """Let requests go wrong by chance, the same way for the same seed and the same requests.

        Args:
            rate: how many of all requests, between 0 and 1.
            kinds: `before` and `after`: the connection is dropped before or after the server acted; else a status.
        """
        self._faults.chance, self._faults.rate, self._faults.kinds = random.Random(seed), rate, tuple(kinds)

    def heal(self) -> None:
        """Forget all faults, and what goes wrong by chance."""
        self._faults.rules.clear()
        self._faults.rate = 0.0

    def when(self, method: str, path: str, action: Callable[[], None], *, after: bool = False, times: int = 1) -> None:
        """Do something just before the server acts on a request, or just after: what somebody else does at that very moment.

        Args:
            method, path: which requests; `*` stands for anything.
            action: it may use this object and clients of it.
        """
        self._faults.hooks.append(Hook(method, path, action, after, times))

    def happen(self, request: Request, *, after: bool) -> None:
        """Do what `when` asked for (for the server)."""
        self._faults.happen(request.method, request.path, after=after)

    def state(self, *, below: str = "/") -> dict[str, Any]:
        """Everything that deployments can change, as values to compare: files, resources and the grants on them.

        Times, etags and updates are left out. `below`: only files and folders below this path.
        """
        nodes = self.objects.tree.below(absolute(below))
        with self.lock:
            return copy.deepcopy(
                {
                    "files": {node.path: (node.type.value, node.content) for node in nodes},
                    "pipelines": {key: (each.spec, each.run_as, each.parameters) for key, each in self.pipelines.items()},
                    "jobs": {key: each.settings for key, each in self.jobs.items()},
                    "dashboards": {
                        key: (each.path, each.serialized, each.warehouse_id, each.published, each.trashed)
                        for key, each in self.dashboards.items()
                    },
                    "schemas": {name: (each.get("comment"), each.get("properties")) for name, each in self.schemas.items()},
                    "volumes": {name: (each["volume_type"], each.get("comment")) for name, each in self.volumes.items()},
                    "grants": {key: set(grants) for key, grants in self.permissions.grants.items()},
                    "privileges": {key: held for key, held in self.catalog_grants.privileges.items() if held},
                    "volume_contents": self.volume_contents,
                    "tables": sorted(self.tables),
                }
            )

    def begin(self, request: Request) -> Fault | None:
        """Note a request (for the server), and say what goes wrong with it."""
        with self._log:
            self.requests.append(request)
        return self._faults.take(request.method, request.path)

    def script(self, pipeline: str, items: Sequence[Item], *, retry: Sequence[Item] | None = None) -> None:
        """What updates of a pipeline do from now on.

        Args:
            pipeline: its id or name, `*` for all that have no script.
            retry: after an update that failed the workspace starts another one by itself (cause RETRY_ON_FAILURE), which does this.
        """
        updates = self.pipeline_routes.updates
        updates.scripts[pipeline] = tuple(items)
        updates.retries[pipeline] = None if retry is None else tuple(retry)

    def add_warehouse(self, name: str) -> str:
        """One more running SQL warehouse; its id."""
        return self.warehouse_routes.add(name)

    def add_service_principal(self, name: str, *, admin: bool = True) -> tuple[str, str]:
        """A service principal with its client id and secret, for OAuth (`/oidc/v1/token`)."""
        return self.oauth.add(name, admin=admin)

    def advance(self, pipeline: str, stages: int = 1) -> None:
        """Let the active update of a pipeline, by id or name, go on by some stages."""
        with self.lock:
            self.pipeline_routes.updates.advance(self.pipeline(pipeline), stages)

    def finish(self, pipeline: str) -> None:
        """Let the active update of a pipeline come to its end."""
        self.advance(pipeline, 10_000)

    def pipeline(self, name: str) -> Pipeline:
        """A pipeline by id or name."""
        found = [each for each in self.pipelines.values() if name in (each.id, each.name)]
        if len(found) != 1:
            raise KeyError(f"{len(found)} pipelines are called {name}")
        return found[0]

    def job(self, name: str) -> Job:
        """A job by name."""
        found = [each for each in self.jobs.values() if each.settings.get("name") == name]
        if len(found) != 1:
            raise KeyError(f"{len(found)} jobs are called {name}")
        return found[0]

    def grants(self, kind: str, key: object) -> set[tuple[str, str]]:
        """The direct grants on an object as (principal, level): `w.grants("jobs", 12)`."""
        return {(grant.principal, grant.level) for grant in self.permissions.grants[kind, str(key)]}
