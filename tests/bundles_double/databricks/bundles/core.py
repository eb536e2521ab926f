"""The few names of `databricks.bundles.core` that the tests' bundles use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bundle:
    target: str
    variables: dict[str, Any]


@dataclass
class Resources:
    made: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    places: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add_pipeline(self, name: str, pipeline: Any) -> None:
        self._add("pipelines", name, pipeline)

    def add_job(self, name: str, job: Any) -> None:
        self._add("jobs", name, job)

    def add_diagnostic_warning(self, text: str) -> None:
        self.warnings.append(text)

    def _add(self, kind: str, name: str, body: Any) -> None:
        caller = inspect.stack()[2]
        self.made[kind, name] = body if isinstance(body, dict) else body.as_dict()
        self.places[kind, name] = (caller.filename, caller.lineno)


@dataclass(frozen=True)
class Mutator:
    kind: str
    change: Callable[..., Any]


def pipeline_mutator(change: Callable[..., Any]) -> Mutator:
    return Mutator("pipelines", change)
