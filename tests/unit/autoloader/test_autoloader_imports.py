"""Auto Loader runs on workers that have pyspark and pyarrow, and nothing else of ours."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import importlib, importlib.abc, json, pkgutil, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top.startswith("_")
        if not known and top not in ("lakelet", "pyarrow", "pyspark", "py4j", "numpy", "pandas", "dateutil", "pytz", "six", "cloudpickle"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import lakelet.autoloader
before = [name for name in sys.modules if name.partition(".")[0] in ("pyspark", "pyarrow")]
for module in pkgutil.walk_packages(lakelet.autoloader.__path__, "lakelet.autoloader."):
    importlib.import_module(module.name)
print(json.dumps([before, "pandas" in sys.modules]))
"""


def test_every_module_of_auto_loader_imports_with_pyspark_and_pyarrow_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    early, pandas = json.loads(done.stdout)
    assert early == [], "importing the package itself costs neither pyspark nor pyarrow"
    assert not pandas, "it costs each process a fifth of a second; pyarrow imports it with the first array of a Python list"
