"""A Python process of Spark reads its settings as they were sent, in its thousandth task as in its first."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from pyspark import daemon
from pyspark.worker_util import Conf
from lakelet.base.patching import put_on
from lakelet.spark.patches.python_processes import DAEMON

settings = Conf()
settings._conf = {"state_value_schema": '{"elementType":"long"}', "other": "TRUE"}
daemon.worker = lambda: print(settings.get("state_value_schema"), settings.get("other")) or 0
put_on(DAEMON)
for _ in range(2_000):
    daemon.worker()
"""


def test_settings_keep_their_case_in_every_task_of_a_process_that_is_reused():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ['{"elementType":"long"} true'] * 2_000
