"""A continuous update through the command line: it follows new files, Ctrl-C ends it, a script can ask for one pass (RE-15)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap

import pytest

from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET

pytestmark = [pytest.mark.spark, pytest.mark.slow, NEEDS_LAKELET]

BUNDLE = """
    bundle: {name: shop}
    resources:
      pipelines:
        shop:
          name: shop
          continuous: true
          configuration:
            landing: landing
            pipelines.trigger.interval: 1 second
          libraries: [{file: {path: shop.py}}]
"""
PIPELINE = """
    import dlt

    @dlt.table
    def orders():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id bigint").load(spark.conf.get("landing"))

    @dlt.table
    def counted():
        return dlt.read("orders").groupBy().count()

    @dlt.on_event_hook
    def shout(event):
        print("HOOK", event["event_type"])
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "databricks.yml").write_text(textwrap.dedent(BUNDLE))
    (tmp_path / "shop.py").write_text(textwrap.dedent(PIPELINE))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text('{"id": 1}\n')
    return tmp_path


def shown(folder, name):
    done = subprocess.run([LAKELET, "show", name, "--json"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_new_files_are_followed_until_the_process_is_told_to_stop(folder, number):
    command = [str(LAKELET), "run", "--json"]
    arriving = {"orders": ["2", "3"]}
    completed = 0
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        for line in process.stdout:
            event = json.loads(line)  # what a hook prints is not among the events
            status = event["details"].get("flow_progress", {}).get("status")
            if status == "COMPLETED" and event["origin"]["flow_name"].endswith(".counted"):
                completed += 1
                if not arriving["orders"]:
                    break
                name = arriving["orders"].pop(0)
                (folder / "landing" / f"{name}.json").write_text(f'{{"id": {name}}}\n')
        assert completed == 3
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does: the whole group
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "it goes on until Ctrl-C; --triggered" in err
    assert "HOOK update_progress" in err
    states = [json.loads(line)["details"]["update_progress"] for line in out.splitlines() if '"update_progress":' in line]
    assert [s["state"] for s in states] == ["STOPPING", "CANCELED"]
    assert {s["cancellation_cause"] for s in states} == {"USER_ACTION" if number == signal.SIGINT else "WORKFLOW_CANCELLATION"}
    assert sorted(row["id"] for row in shown(folder, "orders")) == [1, 2, 3]
    assert shown(folder, "counted") == [{"count": 3}]


def test_a_script_asks_for_one_pass(folder):
    done = subprocess.run([LAKELET, "run", "--triggered"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert shown(folder, "counted") == [{"count": 1}]
    refused = subprocess.run([LAKELET, "run", "--select", "orders"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2
    assert "--triggered" in refused.stderr
