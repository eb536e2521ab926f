"""SQL in a workspace: statements on a warehouse, bounded in rows and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.base.text import listed

if TYPE_CHECKING:
    from databricks.sdk.service.sql import StatementResponse

    from lakelet.deploy.client import Client

SECONDS = 600.0
"""One statement may take so long, the start of the warehouse included."""


@dataclass(frozen=True)
class Answer:
    """The rows of a statement: names and types of its columns, values as texts. `whole`: whether no row was cut off."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[list[str | None]]
    whole: bool


class Warehouse:
    """Answers statements. `id`: of the warehouse."""

    def __init__(self, client: Client, id: str, *, seconds: float = SECONDS, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self.id = client, id
        self._seconds, self._sleep = seconds, sleep

    def ask(self, sql: str, *, limit: int) -> Answer:
        """Return at most `limit` rows of a query. Raises REMOTE_QUERY_FAILED with the workspace's text, or when the time is over."""
        from databricks.sdk.service.sql import StatementState

        api = self._client.sdk.statement_execution
        deadline, pause = time.monotonic() + self._seconds, 0.5
        found = api.execute_statement(sql, self.id, row_limit=limit, wait_timeout="30s")
        while _state(found) in (StatementState.PENDING, StatementState.RUNNING):
            if time.monotonic() > deadline:
                api.cancel_execution(found.statement_id or "")
                raise LakeletError("REMOTE_QUERY_FAILED", f"the warehouse took longer than {self._seconds:.0f} s", why=sql)
            self._sleep(pause)
            pause = min(5.0, pause * 1.5)
            found = api.get_statement(found.statement_id or "")
        if _state(found) is not StatementState.SUCCEEDED:
            said = found.status.error.message if found.status and found.status.error else None
            raise LakeletError("REMOTE_QUERY_FAILED", f"the warehouse answered {_state(found)}: {said or 'without a reason'}", why=sql)
        columns = (found.manifest.schema.columns if found.manifest and found.manifest.schema else None) or []
        return Answer(
            tuple(column.name or "" for column in columns),
            tuple(column.type_text or "" for column in columns),
            [row for chunk in self._chunks(found) for row in chunk],
            not (found.manifest and found.manifest.truncated),
        )

    def _chunks(self, found: StatementResponse) -> Iterator[list[list[str | None]]]:
        result = found.result
        while result is not None:
            yield [list(row) for row in result.data_array or ()]
            if result.next_chunk_index is None:
                return
            result = self._client.sdk.statement_execution.get_statement_result_chunk_n(found.statement_id or "", result.next_chunk_index)


def find_warehouse(client: Client, wanted: str | None) -> Warehouse:
    """The warehouse of this ID or name; without one, the only one there is. Raises USAGE where one has to be named."""
    if wanted is None and client.sdk.config.warehouse_id:
        return Warehouse(client, client.sdk.config.warehouse_id)
    known = {one.id or "": one.name or "" for one in client.sdk.warehouses.list()}
    chosen = [id for id, name in known.items() if wanted in (None, id, name)]
    if len(chosen) == 1:
        return Warehouse(client, chosen[0])
    if not known:
        raise LakeletError(
            "USAGE", "the workspace has no SQL warehouse that this user may see", todo="Make one, or ask for the right to use one."
        )
    what = (
        "the workspace has several SQL warehouses"
        if wanted is None
        else f"{'no' if not chosen else 'more than one'} SQL warehouse is {wanted}"
    )
    todo = f"Name one by its ID: --warehouse {next(iter(known))}\nThere are: {listed([f'{id} ({name})' for id, name in known.items()], 6)}"
    raise LakeletError("USAGE", what, todo=todo)


def _state(found: StatementResponse) -> object:
    return found.status.state if found.status else None
