"""A project whose update reads something of every kind, and the decision of later updates whether they need Java.

The project is written once and updated by real processes. The decisions come from a process that has loaded Lakelet and forks for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.spark.cli.installed import NotedJava

GIVEN = "given"

BRONZE = """\
import configparser
import csv
import glob
import json
import os
import pkgutil
import sys
from importlib import resources
from pathlib import Path

import dlt
import pandas as pd
import yaml
from pyspark.sql import functions as F

import shop_lib
from shop_lib.prices import CURRENCY

ROOT = Path.cwd()
sys.path += [str(ROOT / "more"), str(ROOT / "optional")]
import beside

try:
    from shop_lib import own_prices
except ImportError:
    own_prices = None

with open("settings/limit.txt") as file:
    LIMIT = int(file.read())
KINDS = yaml.safe_load(Path("settings/kinds.yml").read_text())
WAYS = pd.read_csv("settings/ways.csv")["way"].tolist()
SHAPES = sorted(glob.glob("settings/shapes/*.json"))
DEEP = [json.loads(file.read_text()) for file in sorted(Path("settings/deep").rglob("*.json"))]
WALKED = [name for _, _, names in os.walk("settings/walked") for name in sorted(names)]
SIZES = {entry.name: entry.stat().st_size for entry in os.scandir("settings/sized")}
CHANGED = os.path.getmtime("settings/changed.txt")
SWITCHED = os.path.exists("flags/on") or Path("flags/also_on").is_file()
ABSENT = configparser.ConfigParser().read(["settings/absent.ini"])
RELEASE = Path("releases/current").resolve().name
NOTED = dbutils.fs.head("/Volumes/main/raw/notes.txt")
OFFERED = [file.name for file in dbutils.fs.ls("/Volumes/main/raw/offers")]
with open("/Volumes/main/raw/header.csv") as file:
    HEADER = next(csv.reader(file))
PACKED = pkgutil.get_data("shop_lib", "packed.txt"), (resources.files("shop_lib") / "table.txt").read_text()

REGION = os.environ.get("SHOP_REGION", "north")
WEEK = os.getenv("SHOP_WEEK") or spark.conf.get("week", "1")
STRICT = "SHOP_STRICT" in os.environ, os.environ["SHOP_ZONE"]
TOKEN = dbutils.secrets.get("shop", "token")
DAYS = spark.conf.get("days")


@dlt.table(comment=f"{REGION} {WEEK} {STRICT} {DAYS} {LIMIT} {KINDS} {WAYS} {SHAPES} {DEEP} {WALKED} {SIZES} {CHANGED} {RELEASE}")
@dlt.expect("positive", "id > 0")
def orders():
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load("/Volumes/main/raw/orders")


@dlt.table
def returns():
    stream = spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").option("header", "true")
    return stream.schema("id LONG, why STRING").load(spark.conf.get("landing") + "/*/returns")


@dlt.table
def silver():
    from shop_lib import late

    return dlt.read_stream("orders").where(F.col("id") < late.limit())
"""

GOLD = """\
CREATE MATERIALIZED VIEW gold AS
SELECT name, count(*) AS orders FROM silver JOIN shop.outside.kinds USING (kind) GROUP BY name;

CREATE MATERIALIZED VIEW unwanted AS SELECT why, count(*) AS returns FROM returns WHERE why <> '${word}' GROUP BY why;
"""

BUNDLE = """\
bundle:
  name: shop
include: [resources/*.yml]
variables:
  schema:
    default: sales
targets:
  dev:
    default: true
  prod:
    variables:
      schema: sold
"""

PIPELINE = """\
resources:
  pipelines:
    shop:
      name: shop
      catalog: main
      schema: ${var.schema}
      libraries:
        - glob:
            include: ../pipelines/**
      configuration:
        days: "30"
        word: lost
"""

SETTINGS = """\
[tool.lakelet]
parameters = { landing = "landing" }
map = { "/Volumes/main/raw" = "raw" }
table = { "shop.outside.kinds" = "kinds" }
"""

RULES = """\
datasets:
  orders:
    warn:
      known: kind IS NOT NULL
"""

FILES = {
    "databricks.yml": BUNDLE,
    "resources/shop.pipeline.yml": PIPELINE,
    "pyproject.toml": SETTINGS,
    "pipelines/bronze.py": BRONZE,
    "pipelines/gold.sql": GOLD,
    "expectations/rules.yml": RULES,
    "expectations/more/empty.yml": "datasets: {}\n",
    "shop_lib/__init__.py": "",
    "shop_lib/prices.py": "from shop_lib import deeper\n\nCURRENCY = deeper.NAME\n",
    "shop_lib/deeper.py": "NAME = 'EUR'\n",
    "shop_lib/late.py": "from pathlib import Path\n\n\ndef limit():\n    return int(Path('settings/late.txt').read_text())\n",
    "shop_lib/packed.txt": "packed",
    "shop_lib/table.txt": "table",
    "more/beside.py": "",
    "settings/limit.txt": "90",
    "settings/late.txt": "80",
    "settings/kinds.yml": "a: first\n",
    "settings/ways.csv": "way\nsea\n",
    "settings/shapes/a.json": "{}",
    "settings/deep/down/a.json": "{}",
    "settings/walked/a/b/c.txt": "",
    "settings/sized/a.txt": "",
    "settings/changed.txt": "",
    "releases/1/notes.txt": "",
    "releases/2/notes.txt": "",
    "raw/header.csv": "id,kind\n",
    "raw/notes.txt": "notes",
    "raw/offers/a.txt": "",
    "raw/orders/2026/a.json": '{"id": 1, "kind": "a", "at": 1}\n{"id": 2, "kind": "b", "at": 2}\n',
    "landing/north/returns/a.csv": "id,why\n1,broken\n",
}
"""Every file of the project is read by its update, but for those of `UNREAD`."""
UNREAD = {
    "README.md": "# Shop\n",
    "docs/orders.md": "# Orders\n",
    "tests/test_orders.py": "",
    "settings/.editor": "",
    "releases/notes.md": "",
    "flags/.gitkeep": "",
}

DECISIONS = """\
import functools
import gc
import json
import os
import sys

import typer

import lakelet.cli.spark_start as first_start
import lakelet.pipeline as pipeline
import lakelet.update.idle.answer as answer
from lakelet.cli.main import main
from lakelet.storage.root import Storage
from lakelet.update.idle.facts import Here, looked_up
from lakelet.update.idle.record import load_record, save_record


def unchanged(facts, here, original=answer.unchanged):
    reason = original(facts, here)
    if reason is not None:
        say(str(reason))
    return reason


def signed(config, listeners):
    "Take what the project is now for what the record was made of: each thing that was recorded gets its present signature."
    record = load_record(Storage(config.storage))
    here = Here(config, record.key, dict(os.environ))
    facts = looked_up(here, [(fact.kind, fact.name) for fact in record.facts])
    save_record(Storage(config.storage), answer.replace(record, facts=facts).to_json())
    say("signed")


class Said(BaseException):
    pass


def say(text):
    raise Said(text)


typer.main.get_command = functools.cache(typer.main.get_command)  # most of the time of a command that does nothing


def answered(asked):
    "Run the command up to its decision, and return what it comes to."
    os.environ.clear()
    os.environ.update(asked["environ"])
    os.chdir(asked["folder"])
    sys.path[0] = asked["folder"]
    sys.path += asked["search"]
    first_start.ready_for_spark = lambda packages: None
    answer.unchanged = unchanged
    answer._emitted = lambda *_: say("given")
    pipeline.Pipeline._update = lambda *_: say("there is no record")
    pipeline.idle_answer = signed if asked["sign"] else answer.idle_answer
    try:
        return f"exit code {main(['run', *asked['arguments']])}"
    except Said as said:
        return str(said)


output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for number, line in enumerate(sys.stdin):
    if number == 0:  # here, so that all modules are loaded before the first fork
        print(answered(json.loads(line)), file=output, flush=True)
        gc.freeze()
        continue
    process = os.fork()
    if process == 0:
        print(answered(json.loads(line)), file=output, flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""
"""Each line of stdin is a `lakelet run`, up to its decision whether the update needs Java: answers with "given", or with the reason."""


@dataclass
class Shop:
    """The project, and the process that decides.

    The next command has the environment `environ`, the arguments `arguments`, the working folder `folder` (None: the project's), and
    finds modules in the folders `search` too.
    """

    root: Path
    environ: dict[str, str]
    java: NotedJava
    python: str
    arguments: list[str] = field(default_factory=list)
    folder: Path | None = None
    search: list[str] = field(default_factory=list)
    _process: Any = None

    @property
    def storage(self) -> Path:
        return self.root / ".lakelet"

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.storage / "system" / "idle.json").read_text())
        return found

    def run(self) -> subprocess.CompletedProcess[str]:
        """`lakelet run` in a process of its own."""
        command = [self.python, "-m", "lakelet", "run", *self.arguments]
        return subprocess.run(command, cwd=self.root, env=self.environ, capture_output=True, text=True, timeout=900, check=False)

    def decision(self) -> str:
        """`GIVEN` if the next update would be answered without Java, else why not."""
        return self._asked(sign=False)

    def sign(self) -> None:
        """Take the project as it is for the one that the update has read; which things are compared stays as it was recorded."""
        assert self._asked(sign=True) == "signed"

    def _asked(self, *, sign: bool) -> str:
        asked = {"environ": self.environ, "folder": str(self.folder or self.root), "arguments": self.arguments, "search": self.search}
        self._process.stdin.write(json.dumps({**asked, "sign": sign}) + "\n")
        self._process.stdin.flush()
        return str(self._process.stdout.readline()).strip()


@contextmanager
def shop(folder: Path) -> Iterator[Shop]:
    """Write the project into a folder and update it, until there is a record."""
    root = folder / "shop"
    for name, text in {**FILES, **UNREAD}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "releases" / "current").symlink_to("1")
    write_deltalake(str(root / "kinds"), pa.table({"kind": ["a", "b"], "name": ["first", "second"]}))
    java = NotedJava.made(folder / "java-17")
    NotedJava.made(folder / "java-21")
    (folder / "java").symlink_to("java-17")
    (folder / "spark-conf").mkdir()
    (folder / "spark-conf" / "spark-defaults.conf").write_text("spark.ui.showConsoleProgress false\n")
    of_java = {"JAVA_HOME": str(folder / "java"), "SPARK_CONF_DIR": str(folder / "spark-conf")}
    environ = {**os.environ, **of_java, "LAKELET_SECRET_SHOP_TOKEN": "t", "SHOP_ZONE": "1"}
    made = Shop(root, environ, java, _environment(folder / "venv"))
    for _ in range(2):  # the first update may have made tables with other columns than it was analysed with
        done = made.run()
        assert done.returncode == 0, done.stderr
        if "doubt" not in made.record:
            break
    assert "doubt" not in made.record, made.record
    with deciding(made):
        yield made


@contextmanager
def deciding(made: Shop) -> Iterator[None]:
    """Start the process that decides; it ends with the block."""
    command = [made.python, "-c", DECISIONS]
    pipe = subprocess.PIPE
    with (
        (made.root.parent / "decisions.err").open("w") as said,
        subprocess.Popen(command, cwd=made.root, env=made.environ, stdin=pipe, stdout=pipe, stderr=said, text=True) as made._process,
    ):
        yield


def _environment(folder: Path) -> str:
    """Make a virtual environment with a package of its own, `tool` 1.0, above the packages of this one. Return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    above = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "above.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in above))
    (packages / "tool").mkdir()
    (packages / "tool" / "__init__.py").write_text("from tool import part\n")
    (packages / "tool" / "part.py").write_text("NAME = 'tool'\n")
    (packages / "tool-1.0.dist-info").mkdir()
    (packages / "tool-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
    return str(folder / "bin" / "python")


__all__ = ["FILES", "GIVEN", "UNREAD", "Shop", "shop"]
