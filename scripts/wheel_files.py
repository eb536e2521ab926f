"""Build hook of the wheel: it carries the projects that `lakelet new project` begins with, without what is ignored by git.

An editable installation finds them in its checkout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "lakelet/scaffold/shipped"


class ShippedProjects(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the files below the folders that `shipped` in pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each file under its own path below `TARGET`."""
        root = Path(self.root)
        for name in self.config["shipped"] if version == "standard" else ():
            files = [root / name] if (root / name).is_file() else sorted((root / name).rglob("*"))
            below = {file: file.relative_to(root).as_posix() for file in files if file.is_file() and "__pycache__" not in file.parts}
            kept = {file: path for file, path in below.items() if not self.build_config.path_is_excluded(path)}
            build_data["force_include"].update({str(file): f"{TARGET}/{path}" for file, path in kept.items()})
