"""What a batch query of a flow fails with, as the error of its flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors.exceptions.base import PySparkException

from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowTask
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.storage.delta import schemas


@contextmanager
def failures_of(task: FlowTask, what: str = "the query failed while it ran") -> Iterator[None]:
    """Raise as a LakeletError what the block raises: `what` happened, or the function of the user's raised something."""
    try:
        yield
    except (LakeletError, schemas.Incompatible, PySparkException) as problem:
        raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from None
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] == "py4j":  # Java failed while it wrote
            raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from problem
        raise user_error(problem, task.dataset, task.declared) from problem


__all__ = ["failures_of"]
