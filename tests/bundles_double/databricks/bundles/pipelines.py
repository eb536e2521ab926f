"""`Pipeline` with the fields that the tests' bundles use."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass
class Pipeline:
    name: Any = None
    catalog: Any = None
    schema: Any = None
    libraries: Any = None
    configuration: Any = None
    tags: Any = None
    serverless: Any = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Pipeline:
        unknown = set(values) - {one.name for one in fields(cls)}
        if unknown:
            raise ValueError(f"Unexpected field '{unknown.pop()}' for class Pipeline")
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        """What is empty is left out, as in the package."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) not in (None, {}, [])}
