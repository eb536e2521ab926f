"""The life of an update: hooks, retries, what is refreshed, how it ends (dlt-semantics 1.9, 5)."""

from __future__ import annotations

BRONZE = """
    import dlt

    @dlt.table
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))
"""


def states(project):
    """States that the last update passed through."""
    return [e.body["state"] for e in project.events if e.event_type == "update_progress"]


# ------------------------------------------------------------------------------------------------------------- hooks


def test_hooks_of_all_files_get_the_events_of_an_update_and_a_broken_one_changes_nothing(project):
    p = project(BRONZE)
    p.write(
        """
        import json
        from pyspark import pipelines as dp

        @dp.on_event_hook
        def keep(event):
            if event["event_type"] in ("flow_progress", "update_progress"):
                with open(spark.conf.get("landing") + "/../kept.jsonl", "a") as out:
                    out.write(json.dumps(event) + "\\n")
        """,
        "monitoring.py",
    )
    p.write(
        """
        import dlt

        @dlt.on_event_hook(max_allowable_consecutive_failures=2)
        def broken(event):
            raise RuntimeError("no network")
        """,
        "slack.py",
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.run()
    assert p.rows("bronze", "id") == [1, 2]
    import json

    kept = [json.loads(line) for line in (p.folder / "kept.jsonl").read_text().splitlines()]
    assert [e["details"]["update_progress"]["state"] for e in kept if e["event_type"] == "update_progress"] == states(p)
    of_flow = [e for e in kept if e["origin"].get("flow_name") == "main.default.bronze"]
    assert of_flow[-1]["details"]["flow_progress"]["status"] == "COMPLETED"
    assert sum(e["details"]["flow_progress"].get("metrics", {}).get("num_output_rows", 0) for e in of_flow) == 2
    logged = p.logged(event_type="hook_progress")
    assert [r["details"]["hook_progress"]["status"] for r in logged] == ["FAILED", "FAILED", "FAILED", "DISABLED"]
    assert "slack.py, line 6" in logged[0]["message"]
    assert logged[0]["level"] == "WARN"


def test_a_hook_with_a_wrong_number_of_arguments_refuses_the_update(project):
    p = project(BRONZE + "    @dlt.on_event_hook\n    def hook(event, more): ...\n")
    assert [e.code for e in p.refused()] == ["ARGUMENT_INVALID"]
