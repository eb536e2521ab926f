"""Small bundles for the tests of how they are read."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import DefinitionErrors
from lakelet.deploy.bundle import desired_state
from lakelet.deploy.desired_state import DesiredState, Resource, User

ADA, BOB = User("ada.l@example.com", "ada_l", "Ada L", "1"), User("bob@example.com", "bob", "Bob", "2")
ROBOT = User("0f8fad5b-d9cb-469f-a165-70867728950e", "deployer")
SOURCE = "import dlt\n\n\n@dlt.table\ndef orders():\n    return spark.range(3)\n"


def ids(kind: str, name: str) -> str:
    """Every name of the workspace has an id made of it."""
    return f"{kind}-{name}"


class Folder:
    """A project folder that a test fills."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, files: dict[str, str]) -> Folder:
        """Write files: text by path."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return self

    def bundle(self, text: str) -> Folder:
        return self.put({"databricks.yml": text})

    def state(self, target: str | None = None, user: User = ADA, **more: Any) -> DesiredState:
        return desired_state(self.root, target, user, **{"environ": {}, "cwd": self.root, "lookup": ids, **more})

    def resource(self, key: str, target: str | None = None, user: User = ADA, **more: Any) -> Resource:
        return one(self.state(target, user, **more), key)

    def mistakes(self, target: str | None = None, user: User = ADA, **more: Any) -> list[str]:
        """Code, text, place and suggestion of each error."""
        with pytest.raises(DefinitionErrors) as raised:
            self.state(target, user, **more)
        return [
            f"{error.code} {error.where}: {error.what}" + (f" → {', '.join(error.nearest)}" if error.nearest else "")
            for error in raised.value.errors
        ]


def one(desired: DesiredState, key: str) -> Resource:
    """The resource of that key."""
    return next(resource for resource in desired.resources if str(resource.key) == key)
