"""A large bundle is read in well under a second."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lakelet.deploy.bundle.imports import forget
from tests.unit.deploy.bundles import Folder

PIPELINES, FILES = 20, 200
RESOURCE = """\
resources:
  pipelines:
    p{0}:
      name: p{0}
      catalog: ${{var.catalog}}
      schema: ${{resources.schemas.s.name}}
      serverless: true
      root_path: ../src
      libraries: [{{glob: {{include: ../src/p{0}/**}}}}]
      configuration: {{landing: "/Volumes/${{var.catalog}}/raw", day: "${{var.day}}", spark.a: "1", spark.b: "2"}}
      environment: {{dependencies: [pyyaml, httpx]}}
      notifications: [{{alerts: [on-update-failure, on-flow-failure], email_recipients: [a@b.c]}}]
  jobs:
    j{0}:
      schedule: {{quartz_cron_expression: 0 0 6 * * ?, timezone_id: Europe/Berlin}}
      tasks:
        - task_key: go
          pipeline_task: {{pipeline_id: "${{resources.pipelines.p{0}.id}}"}}
"""
BUNDLE = """\
bundle: {name: large}
include: [resources/*.yml]
variables: {catalog: {default: main}, day: {default: "1"}}
resources: {schemas: {s: {name: s, catalog_name: "${var.catalog}"}}}
targets:
  dev: {mode: development, default: true}
  staging: {variables: {catalog: staging}, workspace: {root_path: /Shared/s}}
  prod: {variables: {catalog: prod}, workspace: {root_path: /Shared/p}}
"""
SOURCE = (
    "import json\nimport dlt\nimport yaml\nfrom helpers.h{0} import value\n\n\n@dlt.table\ndef t{0}():\n    return spark.range(value)\n"
)


def large(folder: Folder) -> Folder:
    files = {f"resources/p{at}.yml": RESOURCE.format(at) for at in range(PIPELINES)}
    for at in range(FILES // 2):
        files[f"src/p{at % PIPELINES}/t{at}.py"] = SOURCE.format(at)
        files[f"src/helpers/h{at}.py"] = "value = 3\n" + "# padding\n" * 500
    return folder.bundle(BUNDLE).put(files)


@pytest.mark.parametrize("target", ["dev", "prod"])
def test_20_pipelines_and_200_files_are_read_in_less_than_a_second_of_processor_time(tmp_path: Path, target: str) -> None:
    folder = large(Folder(tmp_path))
    times = []
    for _ in range(3):
        forget()
        begun = time.process_time()
        desired = folder.state(target)
        times.append(time.process_time() - begun)
    assert (len(desired.resources), len(desired.files)) == (2 * PIPELINES + 1, FILES + PIPELINES + 1)
    assert desired.remarks == ()
    assert min(times) < 1.0, times
