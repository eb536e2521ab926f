"""A process that runs one update of a crash test, and is killed on the way: `python runner.py FOLDER`, in a session of its own.

It says `ready` when Spark is up, then waits for one line of JSON: the request of the update, or what to replay, maintain or compare.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    os.environ.setdefault("LAKELET_FAILPOINT_GROUP", str(os.getpgid(0)))
    from lakelet.spark.launch.session import start_session
    from tests.spark.conftest import Project

    project = Project(Path(sys.argv[1]), start_session(app_name="crash", input_bytes=int(os.environ.get("CRASH_INPUT_BYTES", "0")) or None))
    project.files = [project.folder / "pipeline.py", *sorted(project.folder.glob("*.sql"))]
    if (parameters := project.folder / "parameters.json").exists():
        project.parameters |= json.loads(parameters.read_text())
    print("ready", flush=True)
    request = json.loads(sys.stdin.readline())
    if "maintain" in request:
        from lakelet.maintenance import layout
        from lakelet.maintenance.maintain import maintain

        layout.WORTH_FILES = 1
        failed = [table.error for table in maintain(project.storage.root, request["maintain"], spark=project.spark, least=0) if table.error]
        assert not failed, failed
    elif "diff" in request:
        from lakelet.inspection.pipeline_diff import DiffRequest, pipeline_diff

        found = pipeline_diff(project.pipeline, DiffRequest(names=tuple(request["diff"])))
        assert not found.failed, found
    elif "environment" in request:
        from tests.crash.environment_steps import every_step

        every_step(project, request["environment"])
    elif "replay" in request:
        project.pipeline.replay(*request["replay"])
    else:
        project.run(**{key: tuple(value) for key, value in request.items()})
    print("completed", flush=True)


if __name__ == "__main__":
    main()
