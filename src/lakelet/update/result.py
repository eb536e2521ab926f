"""How an update ended."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.base.errors import LakeletError
from lakelet.plan.decisions import PlanStep
from lakelet.storage.eventlog.states import UpdateState


@dataclass(frozen=True)
class UpdateResult:
    """How an update ended. `state`: COMPLETED, FAILED or CANCELED; `errors`: one per failed flow; `steps`: what was done and why.

    `retry_after`: seconds until it is tried again; None for never. `failed_checks`: the critical checks that the tables fail as
    they are now, as `dataset.check`; they change neither state nor data. `unpublished`: errors of tables and catalogs when the tables were
    published; neither do they. `needs_spark`: why the next update starts Spark even if it has nothing to do (IF-9); empty where it need
    not, or where this process records nothing.
    """

    update_id: str
    state: UpdateState
    errors: tuple[LakeletError, ...]
    seconds: float
    steps: tuple[PlanStep, ...]
    retry_after: float | None = None
    failed_checks: tuple[str, ...] = ()
    unpublished: tuple[LakeletError, ...] = ()
    needs_spark: str = ""

    @property
    def problems(self) -> tuple[LakeletError, ...]:
        """The errors of flows, then those of publishing."""
        return (*self.errors, *self.unpublished)


__all__ = ["UpdateResult"]
