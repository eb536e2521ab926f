"""Files of the repository by their paths in a workspace: below what the bundle syncs, under /Workspace and /Repos. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config.path_map import in_repository
from lakelet.config.update_config import load_config
from lakelet.language.loader import loaded

TABLE = "import dlt\n@dlt.table\ndef boxes():\n    return None\n"


def bundle_below(root: Path, libraries: str, more: str = "") -> Path:
    """A bundle in the folder `deploy` of a repository, which syncs its parent."""
    folder = root / "deploy"
    folder.mkdir(parents=True)
    text = f'bundle: {{name: depot}}\nsync: {{paths: [".."]}}\n{more}resources: {{pipelines: {{boxes: {{libraries: [{libraries}]}}}}}}\n'
    (folder / "databricks.yml").write_text(text)
    (root / "flows").mkdir()
    (root / "flows/boxes.py").write_text(TABLE)
    return folder


@pytest.mark.parametrize(
    "library",
    [
        '{file: {path: "${workspace.file_path}/flows/boxes.py"}}',
        '{notebook: {path: "${workspace.file_path}/flows/boxes"}}',
        '{file: {path: "${workspace.root_path}/files/flows/boxes.py"}}',
        '{glob: {include: "${workspace.file_path}/flows/**"}}',
        "{file: {path: /Workspace/Users/ada@example.com/.bundle/depot/dev/files/flows/boxes.py}}",
        "{notebook: {path: /Repos/ada@example.com/depot/flows/boxes}}",
        "{notebook: {path: /Users/ada@example.com/depot/flows/boxes}}",
        "{glob: {include: /Workspace/Shared/depot/flows/*.py}}",
        "{glob: {include: ../flows/**}}",
    ],
)
def test_libraries_of_a_bundle_that_syncs_its_parent_are_files_of_the_repository(tmp_path, library):
    root = tmp_path / "depot"
    folder = bundle_below(root, library)
    config = load_config([], cwd=folder, environ={})
    assert config.files == (root / "flows/boxes.py",)
    assert root in config.import_roots


def test_modules_are_found_from_the_root_of_what_is_synced(tmp_path):
    root = tmp_path / "depot"
    folder = bundle_below(root, "{glob: {include: ../flows/**}}")
    (root / "common").mkdir()
    (root / "common/weights.py").write_text("KG = 1\n")
    (root / "flows/boxes.py").write_text("from common.weights import KG\n" + TABLE)
    config = load_config([], cwd=folder, environ={})
    with loaded(config.files, import_roots=config.import_roots, namespace=Namespace(), injected={"spark": None}) as found:
        assert found.errors == ()


@pytest.mark.parametrize("written", ["/Workspace/Users/ada/depot/{}", "/Repos/ada/depot/{}", "file:/Workspace/Shared/x/files/{}"])
@pytest.mark.parametrize("name", ["conf/limits.json", "limits.json"])
def test_paths_of_code_under_the_workspace_are_files_of_the_repository(tmp_path, written, name):
    root = tmp_path / "depot"
    folder = bundle_below(root, "{glob: {include: ../flows/**}}")
    (root / "conf").mkdir()
    for file in ("conf/limits.json", "limits.json"):
        (root / file).write_text("{}")
    paths = load_config([], cwd=folder, environ={}).paths
    assert paths.located(written.format(name), readable=lambda scheme: True) == str(root / name)
    assert paths.mapped(written.format(name)) == str(root / name)
    assert paths.located(written.format("conf/*.json"), readable=lambda scheme: True) == str(root / "conf/*.json")


def test_a_path_of_a_workspace_that_names_no_file_of_the_repository_is_still_to_be_mapped(tmp_path):
    root = tmp_path / "depot"
    (root / "conf").mkdir(parents=True)
    (root / "limits.json").write_text("{}")
    for path in (
        "/Workspace/Shared/other/limits.json",
        "/Workspace/Shared/conf.json",
        "/Volumes/a/depot/limits.json",
        "/Workspace/../limits.json",
    ):
        assert in_repository(path, (root,)) is None
    (root / "a.py").write_text(TABLE)
    paths = load_config([], cwd=root, environ={}).paths
    with pytest.raises(LakeletError, match="PATH_NOT_MAPPED"):
        paths.located("/Workspace/Shared/other/limits.json", readable=lambda scheme: True)
    mapped = load_config([], cwd=root, environ={}, maps=[("/Workspace/Users/ada/depot", "conf")]).paths
    assert mapped.located("/Workspace/Users/ada/depot/limits.json", readable=lambda scheme: True, writing=True) == str(
        root / "conf/limits.json"
    )


def test_an_error_about_a_library_shows_what_its_references_stand_for(tmp_path):
    root = tmp_path / "depot"
    more = "variables: {layer: {default: silver}}\n"
    folder = bundle_below(root, '{file: {path: "${workspace.file_path}/flows/${var.layer}.py"}}', more)
    with pytest.raises(LakeletError) as error:
        load_config([], cwd=folder, environ={})
    assert f"it means {root}/flows/silver.py" in str(error.value)


def test_a_module_that_lies_off_the_path_is_named_with_its_folder_and_no_package_is_proposed(tmp_path):
    for name, text in {"a.py": "import weights\n" + TABLE, "b.py": "from lib.scale import kg\n" + TABLE.replace("boxes", "bags")}.items():
        (tmp_path / name).write_text(text)
    for file in ("tools/deep/weights.py", "other/lib/scale.py", "lib/scales.py", "lib/__init__.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    config = load_config([str(tmp_path / "a.py"), str(tmp_path / "b.py")], cwd=tmp_path, environ={})
    with loaded(config.files, import_roots=[tmp_path], namespace=Namespace(), injected={"spark": None}) as found:
        first, second = found.errors
    assert "tools/deep/weights.py" in str(first.todo)
    assert "sys.path.append" in str(first.todo)
    assert second.nearest == ("lib.scales",)
    assert "Install the package" not in f"{first}{second}"


def test_what_only_a_target_syncs_counts_for_a_local_run_of_that_target(tmp_path):
    root = tmp_path / "depot"
    folder = bundle_below(root, '{file: {path: "${workspace.file_path}/flows/boxes.py"}}')
    text = (folder / "databricks.yml").read_text().replace('sync: {paths: [".."]}\n', "")
    (folder / "databricks.yml").write_text(text + 'targets: {here: {default: true}, both: {sync: {paths: [".."]}}}\n')
    assert load_config([], target="both", cwd=folder, environ={}).files == (root / "flows/boxes.py",)
    with pytest.raises(LakeletError, match="does not exist"):
        load_config([], cwd=folder, environ={})
