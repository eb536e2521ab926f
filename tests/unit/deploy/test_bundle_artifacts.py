"""`artifacts` of a bundle: what is built, and what of it is deployed in the place of paths and patterns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.deploy.bundles import SOURCE, Folder

MAKE = """\
import base64, hashlib, pathlib, sys, zipfile
version = sys.argv[1]
files = {
    "shop/__init__.py": b"VALUE = 7\\n",
    f"shop-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\\nName: shop\\nVersion: {version}\\n\\nVersion: of the text\\n".encode(),
    f"shop-{version}.dist-info/WHEEL": b"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
pathlib.Path("dist").mkdir(exist_ok=True)
with zipfile.ZipFile(f"dist/shop-{version}-py3-none-any.whl", "w") as wheel:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
        wheel.writestr(name, content)
    record = f"shop-{version}.dist-info/RECORD"
    wheel.writestr(record, "\\n".join([*lines, f"{record},,"]) + "\\n")
print("made", version)
"""
BUNDLE = f"""\
bundle: {{name: shop}}
include: [resources/*.yml]
artifacts:
  wheel:
    type: whl
    path: package
    build: {sys.executable} make.py 0.1
targets:
  dev: {{mode: development, default: true, presets: {{artifacts_dynamic_version: true}}}}
  prod: {{mode: production, workspace: {{root_path: /Shared/shop}}, run_as: {{service_principal_name: robot}}}}
"""
RESOURCES = """\
resources:
  pipelines:
    orders:
      libraries: [{file: {path: ../src/orders.py}}]
      environment: {dependencies: ["../package/dist/*.whl", "../package/dist/*.whl[train]", requests]}
  jobs:
    nightly:
      tasks:
        - task_key: go
          python_wheel_task: {package_name: shop, entry_point: main}
          libraries: [{whl: ../package/dist/*.whl}, {pypi: {package: requests}}]
          job_cluster_key: k
      job_clusters: [{job_cluster_key: k, new_cluster: {num_workers: 1}}]
"""
FILES = "/Workspace/Shared/shop/files"


@pytest.fixture
def shop(tmp_path: Path) -> Folder:
    files = {"databricks.yml": BUNDLE, "resources/all.yml": RESOURCES, "package/make.py": MAKE, "src/orders.py": SOURCE}
    return Folder(tmp_path).put({**files, ".gitignore": "dist/\n"})


def packages(state: Any) -> list[str]:
    return [file.path for file in state.files if file.path.endswith(".whl")]


def test_a_wheel_is_built_and_deployed_though_git_ignores_it(shop: Folder) -> None:
    state = shop.state("prod")
    settings = {str(one.key): one.settings for one in state.resources}
    wheel = f"{FILES}/package/dist/shop-0.1-py3-none-any.whl"
    assert settings["pipelines.orders"]["environment"] == {"dependencies": [wheel, f"{wheel}[train]", "requests"]}
    assert settings["jobs.nightly"]["tasks"][0]["libraries"] == [{"whl": wheel}, {"pypi": {"package": "requests"}}]
    assert packages(state) == ["package/dist/shop-0.1-py3-none-any.whl"]


def test_modules_of_a_wheel_that_a_pattern_names_are_installed(shop: Folder) -> None:
    shop.put({"src/orders.py": "import shop\nimport polars\n" + SOURCE})
    said = [text.split(" is imported")[0] for text, _ in shop.state("prod").remarks if " is imported" in text]
    assert said == ["polars"]


def test_the_version_of_a_wheel_says_when_it_was_built_and_the_wheel_can_be_installed(shop: Folder, tmp_path: Path) -> None:
    (path,) = packages(shop.state("dev"))
    name = path.rpartition("/")[2]
    version = name.split("-")[1]
    assert path == f".databricks/bundle/dev/patched_wheels/wheel/{name}"
    assert version.startswith("0.1+20")
    wheel = shop.root / path
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"shop-{version}.dist-info/METADATA").decode()
    assert f"\nVersion: {version}\n\nVersion: of the text\n" in metadata
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run([*install, "--disable-pip-version-check"], check=True)
    assert (target / "shop" / "__init__.py").read_text() == "VALUE = 7\n"

    built = shop.root / "package/dist/shop-0.1-py3-none-any.whl"
    os.utime(built, (1_000_000_000, 1_000_000_000))
    shop.put({"databricks.yml": BUNDLE.replace(f"build: {sys.executable} make.py 0.1", "files: [{source: package/dist/*.whl}]")})
    assert packages(shop.state("dev")) == [path.replace(version, "0.1+2001090901464000")]
    assert not wheel.exists()


def test_all_wheels_of_an_artifact_have_copies_and_those_of_earlier_builds_are_removed(shop: Folder) -> None:
    shop.put({"databricks.yml": BUNDLE.replace("make.py 0.1", "make.py 0.1 && sleep 0.02 && " + sys.executable + " make.py 0.2")})
    for _ in range(2):
        found = packages(shop.state("dev"))
        assert [path.rpartition("/")[2].split("+")[0] for path in found] == ["shop-0.1", "shop-0.2"]
        copies = (shop.root / ".databricks/bundle/dev/patched_wheels/wheel").iterdir()
        assert sorted(copy.name for copy in copies) == [path.rpartition("/")[2] for path in found]


def test_the_folder_of_a_bundle_may_have_the_signs_of_a_pattern(shop: Folder, tmp_path: Path) -> None:
    moved = Folder(tmp_path / "copy [1]").put({"a.txt": ""})
    shutil.copytree(shop.root, moved.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("copy *"))
    assert packages(moved.state("prod")) == ["package/dist/shop-0.1-py3-none-any.whl"]


def test_a_wheel_at_an_address_is_no_local_one(shop: Folder) -> None:
    line = "shop @ https://example.net/shop-0.1-py3-none-any.whl"
    shop.put({"resources/all.yml": RESOURCES.replace("requests]", f'"{line}"]')})
    assert line in shop.resource("pipelines.orders", "prod").settings["environment"]["dependencies"]


def test_a_build_that_fails_says_what_it_wrote_and_nothing_is_deployed(shop: Folder) -> None:
    shop.put({"databricks.yml": BUNDLE.replace("make.py 0.1", "make.py")})
    (mistake,) = shop.mistakes("prod")
    assert mistake.startswith("ARTIFACT_FAILED databricks.yml, line 4: the build of the artifact 'wheel' ended with exit code 1")
    shop.put({"databricks.yml": BUNDLE.replace(f"{sys.executable} make.py 0.1", "'true'")})
    assert shop.mistakes("prod")[0].startswith("ARTIFACT_FAILED databricks.yml, line 4: the artifact 'wheel' has no file ")
    shop.put({"databricks.yml": BUNDLE.replace("path: package", "path: nowhere")})
    assert "/nowhere of the artifact 'wheel' does not exist" in shop.mistakes("prod")[0]


def test_nothing_is_built_for_a_bundle_with_a_mistake(shop: Folder) -> None:
    shop.put({"databricks.yml": BUNDLE + "sync: {include: 7}\n"})
    assert shop.mistakes("prod")[0].startswith("CONFIG_INVALID")
    assert not (shop.root / "package" / "dist").exists()


def test_a_pattern_that_no_package_matches_is_a_mistake(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("{whl: ../package/dist/*.whl}", "{whl: ../package/out/*.whl}")})
    assert shop.mistakes("prod") == ["CONFIG_INVALID resources/all.yml, line 11: no package matches '../package/out/*.whl'"]
