"""`sys.exit()` and its like in user code fail the dataset that called it, with a code and a line; everything else goes on."""

from __future__ import annotations

import pytest

from lakelet.cli.main import main

SOUND = """
    import asyncio, os, sys
    import dlt
    from pyspark.sql import functions as F

    class Odd(BaseException):
        pass

    @dlt.table
    def sound():
        return spark.range(3)
"""


def failures(project):
    """Code, text and line of each failed dataset."""
    return {str(e.dataset).rsplit(".", 1)[-1]: (e.code, e.what, e.where.line) for e in project.result.errors}


def test_a_function_that_exits_fails_its_dataset_and_what_reads_it(project):
    p = project(
        SOUND
        + """
    @dlt.table
    def exits():
        sys.exit()

    @dlt.table
    def interrupts():
        raise KeyboardInterrupt("not the user")

    @dlt.table
    def cancelled():
        raise asyncio.CancelledError

    @dlt.table
    def odd():
        raise Odd("own class")

    @dlt.view
    def leaves():
        sys.exit("no rows today")

    @dlt.table
    def reads_view():
        return dlt.read("leaves")

    @dlt.table
    def reads_table():
        return dlt.read("exits")

    @dlt.table
    def streams():
        spark.readStream.table("sound")
        raise GeneratorExit

    def snapshot(latest):
        sys.exit(4)

    dlt.create_streaming_table("kept")
    dlt.apply_changes_from_snapshot(target="kept", source=snapshot, keys=["id"], stored_as_scd_type=1)
"""
    ).run(expect="FAILED")
    assert p.rows("sound") == [0, 1, 2]
    assert {name: (code, what.removeprefix("its function raised "), line) for name, (code, what, line) in failures(p).items()} == {
        "exits": ("USER_FUNCTION_FAILED", "SystemExit", 15),
        "interrupts": ("USER_FUNCTION_FAILED", "KeyboardInterrupt: not the user", 19),
        "cancelled": ("USER_FUNCTION_FAILED", "CancelledError", 23),
        "odd": ("USER_FUNCTION_FAILED", "Odd: own class", 27),
        "leaves": ("USER_FUNCTION_FAILED", "SystemExit: no rows today", 31),
        "streams": ("USER_FUNCTION_FAILED", "GeneratorExit", 44),
        "kept": ("USER_FUNCTION_FAILED", "SystemExit: 4", 47),
    }
    assert p.statuses()["reads_table"] == "SKIPPED"


def test_a_function_that_exits_only_when_the_update_runs_fails_its_flow(project):
    """Analysis calls it first; a flow's function and a snapshot function are called again, in a thread of the flow."""
    p = project(
        SOUND
        + """
    calls = {"batch": 0, "stream": 0, "snapshot": 0}

    def counted(name):
        calls[name] += 1
        if calls[name] > 1:
            sys.exit(0)

    @dlt.table
    def batch():
        counted("batch")
        return dlt.read("sound")

    @dlt.table
    def stream():
        counted("stream")
        return dlt.read_stream("sound")

    def snapshot(latest):
        counted("snapshot")
        return spark.range(1), 1

    dlt.create_streaming_table("kept")
    dlt.apply_changes_from_snapshot(target="kept", source=snapshot, keys=["id"], stored_as_scd_type=1)
"""
    ).run(expect="FAILED")
    assert p.rows("sound") == [0, 1, 2]
    told = ("USER_FUNCTION_FAILED", "its function raised SystemExit: 0")
    assert {name: (code, what) for name, (code, what, _) in failures(p).items()} == {"batch": told, "stream": told, "kept": told}


def test_a_sink_or_hook_that_exits_does_not_end_the_update(project):
    p = project(
        SOUND
        + """
    from pyspark import pipelines as dp

    @dlt.on_event_hook
    def leaves(event):
        sys.exit("hook")

    @dp.foreach_batch_sink
    def to_nowhere(df, batch_id):
        sys.exit("sink")

    @dlt.append_flow(target="to_nowhere")
    def send():
        return dlt.read_stream("sound")
"""
    ).run(expect="FAILED")
    assert p.rows("sound") == [0, 1, 2]
    (error,) = p.result.errors
    assert (error.code, error.what, error.why, error.where.line) == (
        "SINK_HANDLER_FAILED", "its function raised SystemExit in batch 0", "sink", 21,
    )  # fmt: skip
    assert any("raised SystemExit: hook" in e.message for e in p.events if e.event_type == "hook_progress")


def test_the_command_ends_with_an_error_where_a_function_exits_with_zero(spark, tmp_path, capfd):
    (tmp_path / "pipeline.py").write_text("import dlt, sys\n\n@dlt.table\ndef leaving():\n    sys.exit(0)\n")
    storage = ["--storage", str(tmp_path / "storage")]
    assert main(["run", str(tmp_path / "pipeline.py"), *storage]) == 1
    told = capfd.readouterr().err
    assert "[USER_FUNCTION_FAILED]" in told
    assert "SystemExit: 0" in told
    assert "pipeline.py, line 5" in told


STOPPED = "Caught StopIteration thrown from user's code; failing the task"
RAISED = {
    "exits": ("sys.exit('bye')", "SystemExit: bye"),
    "interrupted": ("raise KeyboardInterrupt('by code')", "KeyboardInterrupt: by code"),
    "closed": ("raise GeneratorExit('closed')", "GeneratorExit: closed"),
    "odd": ("raise Odd('own class')", "Odd: own class"),
    "ended": ("raise StopIteration('no more')", f"[STOP_ITERATION_OCCURRED] {STOPPED}: no more"),
    "leaves": ("os._exit(0)", "the Python process of a UDF ended: os._exit in its code, a crash of a library, or no memory"),
}


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("decorator", ['F.udf("string")', 'F.pandas_udf("string")'])
def test_a_udf_that_exits_fails_its_dataset_with_its_text(decorator, project):
    functions = "".join(
        f"""
    @{decorator}
    def raises_{name}(x: pd.Series) -> pd.Series:
        {code}

    @dlt.table
    def {name}():
        return dlt.read("sound").select(raises_{name}("id").alias("x"))
"""
        for name, (code, _) in RAISED.items()
    )
    p = project(SOUND + "\n    import pandas as pd\n" + functions).run(expect="FAILED")
    assert p.rows("sound") == [0, 1, 2]
    found = {str(e.dataset).rsplit(".", 1)[-1]: (e.code, (e.why or "").removeprefix("PySparkRuntimeError: ")) for e in p.result.errors}
    assert found == {name: ("FLOW_FAILED", told) for name, (_, told) in RAISED.items()}
