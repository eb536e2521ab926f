"""Configuration: bundle files, [tool.lakelet], environment, flags, and what a source may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.base.names import Namespace
from lakelet.base.redaction import redacted
from lakelet.config.update_config import find_storage, load_config
from tests.unit.config.projects import Project, bundle


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "shop")


def test_a_bundle_says_files_names_and_parameters(project):
    config = bundle(project).load()
    assert config.name == "shop_prod"
    assert config.target == "prod"
    assert config.root == project.root
    assert project.files(config) == [f"src/shop/transformations/{n}" for n in ("a.py", "b/two.sql", "z.ipynb")]
    assert config.import_roots[:3] == (project.root / "src/shop", project.root, project.root / "src")
    assert config.namespace == Namespace("live", "raw_shop")
    assert config.parameters == {
        "landing": f"{project.root}/landing",
        "level": "high",
        "price": "1.10",
        "job": "${resources.jobs.daily.id}",
    }
    assert config.storage == project.root / ".lakelet"
    assert config.master is None


def test_another_target_by_flag_or_environment(project):
    bundle(project)
    by_flag = project.load(target="dev")
    assert (by_flag.target, by_flag.namespace, by_flag.parameters["level"]) == ("dev", Namespace("main", "dev_shop"), "low")
    assert project.load(environ={"LAKELET_TARGET": "dev"}) == by_flag
    assert project.load(target="prod", environ={"LAKELET_TARGET": "dev"}).target == "prod"


def test_without_a_default_the_first_target_counts(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        targets: {one: , two: {mode: production}}
        resources: {pipelines: {p: {libraries: [{file: {path: a.py}}]}}}
        """,
    )
    assert project.load().target == "one"


def test_variables_from_the_environment_win(project):
    assert bundle(project).load(environ={"BUNDLE_VAR_catalog": "mine"}).namespace.catalog == "mine"


def test_variables_from_the_overrides_file(project):
    bundle(project).write(".databricks/bundle/prod/variable-overrides.json", '{"prefix": "own"}')
    assert project.load().namespace.schema == "own_shop"


def test_layers_win_in_their_order(project):
    bundle(project).write(
        "pyproject.toml",
        """\
        [tool.lakelet]
        catalog = "toml"
        storage = "keep/here"
        master = "local[1]"
        [tool.lakelet.parameters]
        level = "toml"
        limits.rows = 5
        """,
    )
    config = project.load()
    assert (config.namespace.catalog, config.storage, config.master) == ("toml", project.root / "keep/here", "local[1]")
    assert (config.parameters["level"], config.parameters["limits.rows"]) == ("toml", "5")
    environ = {"LAKELET_CATALOG": "env", "LAKELET_STORAGE": "s", "LAKELET_MASTER": "local[3]", "LAKELET_PARAM_level": "env"}
    config = project.load(environ=environ)
    assert (config.namespace.catalog, config.storage, config.master) == ("env", project.root / "s", "local[3]")
    assert config.parameters["level"] == "env"
    config = project.load(environ=environ, catalog="flag", schema="other", storage="f", params={"level": "flag"})
    assert (config.namespace, config.storage) == (Namespace("flag", "other"), project.root / "f")
    assert config.parameters["level"] == "flag"


def test_a_parameter_stays_as_it_was_written(project):
    assert project.write("a.py").load("a.py", params={"landing": "../data"}).parameters == {"landing": "../data"}


def test_the_id_is_stable_and_depends_on_name_and_storage(project):
    bundle(project)
    first = project.load().pipeline_id
    assert project.load().pipeline_id == first
    assert project.load(storage="elsewhere").pipeline_id != first
    assert project.load(target="dev").pipeline_id != first


def test_the_project_is_found_from_a_folder_inside_it(project):
    bundle(project)
    assert project.load(cwd=project.root / "src/shop") == project.load()


def test_a_project_folder_as_source(project, tmp_path):
    bundle(project)
    assert project.load("shop", cwd=tmp_path) == project.load()


def test_files_named_by_hand_take_the_pipeline_they_belong_to(project):
    config = bundle(project).load("src/shop/transformations/a.py")
    assert (project.files(config), config.name) == (["src/shop/transformations/a.py"], "shop_prod")
    other = project.write("other.py").load("other.py")
    assert (other.name, other.namespace, other.root, dict(other.parameters)) == ("other", Namespace(), project.root, {})


def test_a_library_that_does_not_exist_stops_the_files_of_its_own_pipeline_only(project):
    bundle(project).write("lab.py").write("other.py").write(
        "resources/lab.yml", "resources: {pipelines: {lab: {libraries: [{file: {path: ../lab.py}}, {notebook: {path: ../gone.ipynb}}]}}}\n"
    )
    assert project.load("src/shop/transformations/a.py").name == "shop_prod"
    assert project.load("other.py").name == "other"
    for source in ("lab.py", "lab"):
        assert project.error(source).what == "the notebook '../gone.ipynb' does not exist"


def test_several_pipelines_need_a_name(project):
    bundle(project).write("lab.py").write(
        "resources/lab.yml",
        """\
        resources:
          pipelines:
            lab:
              target: lab
              libraries: [{notebook: {path: ../lab}}]
        """,
    )
    error = project.error()
    assert (error.code, error.what) == ("CONFIG_INVALID", "the bundle declares 2 pipelines: lab, shop")
    assert project.load("lab").namespace == Namespace("main", "lab")
    assert project.files(project.load("lab")) == ["lab.py"]
    assert project.load("lab.py").name == "lab"
    assert project.error("lap").nearest == ("lab.py", "lab")


def test_anything_anywhere_without_a_bundle(project, tmp_path):
    project.write("one.py").write("deep/two.sql", "CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT 1")
    project.write("setup.py", "import os\n").write("test_one.py").write(".venv/lib/x.py").write("deep/select.sql", "SELECT 1")
    folder = project.load("shop", cwd=tmp_path)
    assert project.files(folder) == ["deep/two.sql", "one.py"]
    assert (folder.name, folder.root, folder.namespace) == ("shop", tmp_path, Namespace("main", "default"))
    assert project.load().files == folder.files
    single = project.load("shop/one.py", cwd=tmp_path)
    assert (single.name, single.root, single.storage) == ("one", tmp_path, tmp_path / ".lakelet")
    assert project.root in single.import_roots
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    far = project.load(str(project.root / "one.py"), cwd=elsewhere)
    assert (far.root, far.storage) == (project.root, project.root / ".lakelet")
    assert project.files(project.load("*.py", "deep/*.sql")) == ["one.py", "setup.py", "test_one.py", "deep/select.sql", "deep/two.sql"]


def test_modules_are_found_in_the_folders_above_a_source_whose_project_folder_is_not_named(project, tmp_path):
    project.write("shop/transformations/bronze/a.py").write("shop/utilities/words.py")
    for cwd in (project.root, tmp_path):
        config = load_config([str(project.root / "shop/transformations")], cwd=cwd, environ={})
        assert project.root / "shop" in config.import_roots, cwd
        assert tmp_path.parent not in config.import_roots


def test_sources_of_pyproject_stand_for_a_missing_bundle(project):
    project.write("flows/a.py").write("other.py").write("pyproject.toml", '[tool.lakelet]\nsources = ["flows"]\n')
    assert project.files(project.load()) == ["flows/a.py"]
    project.write("pyproject.toml", '[tool.lakelet]\nsources = ["flaws"]\n')
    assert project.error().code == "CONFIG_INVALID"


def test_old_names_of_the_format_still_work(project):
    project.write("nb.py").write(
        "bundle.yml",
        """\
        bundle: {name: old}
        environments: {stage: {default: true}}
        resources:
          pipelines: {p: {name: "p ${bundle.environment}", target: "old_${bundle.environment}", libraries: [{notebook: {path: ./nb.py}}]}}
        """,
    )
    config = project.load()
    assert (config.name, config.namespace) == ("p stage", Namespace("main", "old_stage"))


def test_a_file_of_an_old_name_that_names_no_bundle_is_another_tools(project):
    project.write("a.py").write("bundle.yaml", "name: other\nversion: 1.0.0\nassets: {notebooks: [{path: a.py}]}\n")
    assert project.load().name != "other"
    project.write("bundle.yaml", "bundle: {name: other}\nassets: {}\n")
    assert project.error().code == "CONFIG_INVALID"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("{name: events}", "c.s.events"),
        ("{catalog: ops, schema: logs, name: '${bundle.name}_events'}", "ops.logs.b_events"),
    ],
)
def test_the_event_log_has_a_name_of_its_own(project, written, name):
    pipeline = f"{{catalog: c, schema: s, event_log: {written}, libraries: [{{file: {{path: a.py}}}}]}}"
    project.write("a.py").write("databricks.yml", f"bundle: {{name: b}}\nresources: {{pipelines: {{p: {pipeline}}}}}\n")
    assert str(project.load().event_log) == name


@pytest.mark.parametrize(("written", "part"), [("{catalog: c}", "has no name"), ("{name: e, shema: s}", "no key 'shema'")])
def test_a_wrong_name_of_the_event_log_is_refused(project, written, part):
    pipeline = f"{{event_log: {written}, libraries: [{{file: {{path: a.py}}}}]}}"
    project.write("a.py").write("databricks.yml", f"bundle: {{name: b}}\nresources: {{pipelines: {{p: {pipeline}}}}}\n")
    assert project.error().code == "CONFIG_INVALID"
    assert part in str(project.error())


def test_anchors_and_merge_keys(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        common_settings: &common
          catalog: c
          schema: s
        shared:
          tags: &tags {a: b}
        resources:
          pipelines:
            p:
              <<: *common
              schema: t
              libraries: [{file: {path: a.py}}]
        """,
    )
    assert project.load().namespace == Namespace("c", "t")


def test_the_workspace_folder_is_the_project(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        resources:
          pipelines:
            p:
              libraries: [{file: {path: a.py}}]
              configuration:
                a: /Workspace${workspace.file_path}/src
                b: /Workspace/${workspace.root_path}
                c: file:${workspace.file_path}
                d: /Workspace/Shared/x
        """,
    )
    here = str(project.root)
    assert project.load().parameters == {"a": f"{here}/src", "b": here, "c": f"file:{here}", "d": "/Workspace/Shared/x"}


def test_parameters_of_the_pipeline_are_defaults_below_its_configuration(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        resources:
          pipelines:
            p:
              libraries: [{file: {path: a.py}}]
              cascade_on_destroy: false
              parameters: {day: "2024-01-01", region: "${bundle.name}", both: parameter}
              configuration: {both: configuration}
        """,
    )
    assert project.load().parameters == {"day": "2024-01-01", "region": "b", "both": "configuration"}
    assert project.load(params={"day": "today"}).parameters["day"] == "today"


def test_the_name_of_a_variable_may_hold_a_reference(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        variables:
          dev_catalog: {default: "${var.${var.inner}}"}
          inner: {default: name}
          name: {default: lake}
          round: {default: "${var.${var.again}}"}
          again: {default: round}
        targets: {dev: {default: true}, prod: {}}
        resources:
          pipelines: {p: {catalog: "${var.${bundle.target}_catalog}", libraries: [{file: {path: a.py}}]}}
        """,
    )
    assert project.load().namespace.catalog == "lake"
    assert project.error(target="prod").what == "the variable 'prod_catalog' is not declared"
    file = project.root / "databricks.yml"
    file.write_text(file.read_text().replace("${bundle.target}_catalog", "round"))
    assert project.error().what == "${var.round} refers to itself"


def test_each_field_of_the_current_user_has_a_value_here(project):
    fields = ("userName", "displayName", "short_name", "domain_friendly_name", "id")
    project.write("a.py").write(
        "databricks.yml",
        "bundle: {name: b}\nresources:\n  pipelines:\n    p:\n      libraries: [{file: {path: a.py}}]\n      configuration:\n"
        + "".join(f"        {name}: orders_${{workspace.current_user.{name}}}\n" for name in fields),
    )
    found = project.load(environ={"USER": "jo.doe"}).parameters
    assert found == {name: f"orders_{'jo.doe' if name.endswith('Name') else 'jo_doe'}" for name in fields}


def test_local_resources_are_looked_up(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        resources:
          schemas: {s: {name: "sales_${bundle.name}", catalog_name: main}}
          pipelines: {p: {schema: "${resources.schemas.s.name}", libraries: [{file: {path: a.py}}]}}
        """,
    )
    assert project.load().namespace.schema == "sales_b"


def test_the_path_of_a_volume_and_the_full_name_of_a_schema_are_known_here(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        resources:
          schemas: {s: {name: "sales_${bundle.name}", catalog_name: main}}
          volumes: {landing: {name: in, catalog_name: main, schema_name: "${resources.schemas.s.name}"}}
          pipelines:
            p:
              libraries: [{file: {path: a.py}}]
              configuration:
                landing: ${resources.volumes.landing.volume_path}/json
                schema: ${resources.schemas.s.id}
                volume: ${resources.volumes.landing.id}
                job: ${resources.jobs.j.id}
        """,
    )
    assert project.load().parameters == {
        "landing": "/Volumes/main/sales_b/in/json",
        "schema": "main.sales_b",
        "volume": "main.sales_b.in",
        "job": "${resources.jobs.j.id}",
    }


def test_the_master_comes_from_the_flag_then_the_environment_then_the_project(project):
    project.write("a.py").write("pyproject.toml", '[tool.lakelet]\nmaster = "local[1]"\nworker_python = "/usr/bin/python3"\n')
    environ = {"LAKELET_MASTER": "spark://b:7077", "LAKELET_WORKER_PYTHON": "/opt/python"}
    found = [project.load(), project.load(environ=environ), project.load(environ=environ, master="local[3]")]
    assert [c.master for c in found] == ["local[1]", "spark://b:7077", "local[3]"]
    assert [c.worker_python for c in found] == ["/usr/bin/python3", "/opt/python", "/opt/python"]


def test_catalogs_to_publish_in_are_named_in_the_tool_settings(project):
    project.write("a.py")
    assert project.load().publish == {}
    project.write("pyproject.toml", '[tool.lakelet]\npublish = { hive = "thrift://one:9083, thrift://two:9083" }\n')
    assert project.load().publish == {"hive": "thrift://one:9083, thrift://two:9083"}


def test_tables_of_others_are_looked_up_where_is_published_or_in_catalogs_of_their_own_in_their_order(project):
    project.write("a.py")
    one = 'publish = { hive = "thrift://one:9083" }\n'
    project.write("pyproject.toml", f"[tool.lakelet]\n{one}")
    assert project.load().catalogs == {"hive": "thrift://one:9083"}
    project.write("pyproject.toml", f'[tool.lakelet]\n{one}catalogs = {{ uc = "http://two", hive = "thrift://three:1" }}\n')
    assert list(project.load().catalogs.items()) == [("uc", "http://two"), ("hive", "thrift://three:1")]
    assert project.load().publish == {"hive": "thrift://one:9083"}
    project.write("pyproject.toml", f"[tool.lakelet]\n{one}catalogs = {{}}\n")
    assert project.load().catalogs == {}


def test_packages_are_named_in_the_tool_settings(project):
    project.write("a.py")
    assert project.load().packages == ()
    project.write("pyproject.toml", '[tool.lakelet]\npackages = ["kafka", "kafka"]\n')
    assert project.load().packages == ("kafka",)


@pytest.mark.parametrize("storage", ["s3a://bucket/lake", "s3://bucket/lake/", "s3n://bucket/lake"])
def test_a_storage_on_s3_is_the_same_place_under_each_of_its_schemes(project, storage):
    project.write("a.py")
    found = project.load("a.py", storage=storage)
    assert str(found.storage) == "s3a://bucket/lake"
    assert found.pipeline_id == project.load("a.py", storage="s3a://bucket/lake").pipeline_id


def test_the_storage_of_commands_without_sources(project):
    bundle(project)
    inside = project.root / "src"
    assert find_storage(cwd=inside, environ={}) == project.root / ".lakelet"
    assert find_storage("x", cwd=inside, environ={"LAKELET_STORAGE": "y"}) == inside / "x"
    assert find_storage(cwd=inside, environ={"LAKELET_STORAGE": "file:/tmp/y"}) == Path("/tmp/y")


def test_configuration_imports_no_spark():
    code = "import sys, lakelet.config.update_config; sys.exit(bool({'pyspark', 'pandas', 'deltalake', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_parameter_that_refers_to_a_secret_has_its_value(project):
    project.write("a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        resources:
          pipelines:
            p:
              libraries: [{file: {path: a.py}}]
              configuration:
                db.password: "{{secrets/kv-prod/db_password}}"
                other: "{{secrets/kv-prod/other}}"
                job: "{{job.id}}"
        """,
    )
    config = project.load(environ={"LAKELET_SECRET_KV_PROD_DB_PASSWORD": "Hunter2"})
    assert config.parameters == {"db.password": "Hunter2", "other": "{{secrets/kv-prod/other}}", "job": "{{job.id}}"}
    [(text, where)] = config.remarks
    assert text == (
        "the parameter 'other' is read as {{secrets/kv-prod/other}}: the secret 'other' of the scope 'kv-prod' is not in the environment; "
        "set the variable LAKELET_SECRET_KV_PROD_OTHER"
    )
    assert (where.file, where.line) == ("databricks.yml", 8)
    assert redacted("it is Hunter2") == "it is [REDACTED]"


def test_a_variable_may_stand_for_a_mapping_or_a_list_and_for_what_is_in_it(project):
    project.write("src/a.py").write(
        "databricks.yml",
        """\
        bundle: {name: b}
        variables:
          stage: {default: "${bundle.target}"}
          settings: {type: complex, default: {stage: "${var.stage}", price: "1.10"}}
          sources: {type: complex, default: [{glob: {include: "src/**"}}]}
          names: {type: complex, default: {schemas: [raw, "gold_${var.stage}"]}}
          dev_settings: {type: complex, default: "${var.settings}"}
          all:
            default: {schema: "${var.names.schemas[1]}", libraries: "${var.sources}", configuration: "${var.${bundle.target}_settings}"}
        targets: {dev: }
        resources: {pipelines: {p: "${var.all}"}}
        """,
    )

    config = project.load()

    assert project.files(config) == ["src/a.py"]
    assert config.namespace == Namespace("main", "gold_dev")
    assert config.parameters == {"stage": "dev", "price": "1.10"}


def test_a_mapping_is_no_text_and_what_is_not_in_it_is_told(project):
    file = """\
        bundle: {name: b}
        variables: {names: {default: {gold: au}}}
        resources: {pipelines: {p: {schema: "%s", libraries: [{file: {path: a.py}}]}}}
        """
    project.write("a.py").write("databricks.yml", file % "${var.names}")
    assert project.error().what == "a single value is expected here"

    error = project.write("databricks.yml", file % "${var.names.golf}").error()
    assert (error.what, error.nearest) == ("the variable 'names' has no 'golf'", ("gold",))
    assert (error.where.file, error.where.line) == ("databricks.yml", 3)
