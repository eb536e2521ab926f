"""A project of files, and load_config called from inside it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import PipelineConfig, load_config

PIPELINE_FILE = "import dlt\n"


class Project:
    """A folder of files, and `load_config` called from inside it with an empty environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def write(self, name: str, text: str = PIPELINE_FILE) -> Project:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return self

    def load(self, *sources: str, environ: dict[str, str] | None = None, cwd: Path | None = None, **flags) -> PipelineConfig:
        return load_config(sources, cwd=cwd or self.root, environ=environ or {}, **flags)

    def files(self, config: PipelineConfig) -> list[str]:
        return [str(f.relative_to(self.root)) for f in config.files]

    def error(self, *sources: str, **flags) -> LakeletError:
        with pytest.raises(LakeletError) as caught:
            self.load(*sources, **flags)
        return caught.value


def bundle(project: Project) -> Project:
    """A bundle as the current templates write it."""
    project.write(
        "databricks.yml",
        """\
        bundle:
          name: shop
        include:
          - resources/*.yml
        variables:
          catalog:
            description: where tables live
            default: main
          schema:
            default: ${var.prefix}_shop
          prefix:
            default: raw
        targets:
          dev:
            mode: development
            variables:
              prefix: dev
          prod:
            default: true
            workspace:
              root_path: /Workspace/Shared/shop
            variables:
              catalog:
                default: live
            resources:
              pipelines:
                shop:
                  configuration:
                    level: high
        """,
    )
    project.write(
        "resources/shop.pipeline.yml",
        """\
        resources:
          pipelines:
            shop:
              name: shop_${bundle.target}
              catalog: ${var.catalog}
              schema: ${var.schema}
              serverless: true
              root_path: ../src/shop
              libraries:
                - glob:
                    include: ../src/shop/transformations/**
              environment:
                dependencies:
                  - --editable ${workspace.file_path}
              configuration:
                landing: ${workspace.file_path}/landing
                level: low
                price: 1.10
                job: ${resources.jobs.daily.id}
        """,
    )
    for name in ("b/two.sql", "a.py", "z.ipynb", "note.txt", "__pycache__/x.py"):
        project.write(f"src/shop/transformations/{name}")
    return project
