"""A bundle for one target: merging, variables, references, presets, paths and permissions, as a deployment reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.deploy.desired_state import Permission
from tests.unit.deploy.bundles import ADA, BOB, ROBOT, SOURCE, Folder, one

SHOP = """\
bundle: {name: shop}
include: [resources/*.yml]
variables:
  catalog: {default: main}
  spark: {type: complex, default: {spark.a: 1, spark.b: true}}
  warehouse: {lookup: {warehouse: Small}}
permissions: [{group_name: everybody, level: CAN_VIEW}]
targets:
  dev: {mode: development, default: true}
  prod:
    mode: production
    workspace: {root_path: "/Shared/.bundle/${bundle.name}/${bundle.target}"}
    variables: {catalog: prod}
    run_as: {service_principal_name: robot}
    permissions: [{user_name: ann@b.c, level: CAN_RUN}]
    resources:
      jobs:
        nightly:
          tasks: [{task_key: go, timeout_seconds: 60}]
"""
RESOURCES = """\
resources:
  schemas:
    shop: {name: shop, catalog_name: "${var.catalog}", grants: [{principal: readers, privileges: [SELECT, USE_SCHEMA]}]}
  volumes:
    raw: {name: raw, catalog_name: "${var.catalog}", schema_name: shop}
  pipelines:
    orders:
      catalog: ${var.catalog}
      schema: shop
      root_path: ../src
      configuration: ${var.spark}
      libraries: [{glob: {include: ../src/tables/**}}]
      permissions: [{group_name: everybody, level: CAN_MANAGE}]
  jobs:
    nightly:
      schedule: {quartz_cron_expression: 0 0 6 * * ?, timezone_id: UTC}
      tasks:
        - task_key: go
          pipeline_task: {pipeline_id: "${resources.pipelines.orders.id}"}
        - task_key: report
          depends_on: [{task_key: go}]
          notebook_task: {notebook_path: ../src/report.py, base_parameters: {pipeline: "${resources.pipelines.orders.name}"}}
  dashboards:
    sales: {file_path: ../sales.lvdash.json, warehouse_id: "${var.warehouse}", dataset_schema: "${resources.schemas.shop.name}"}
"""
FILES = "/Workspace/Users/ada.l@example.com/.bundle/shop/dev/files"


@pytest.fixture
def shop(tmp_path: Path) -> Folder:
    return Folder(tmp_path).put(
        {
            "databricks.yml": SHOP,
            "resources/all.yml": RESOURCES,
            "src/tables/orders.py": SOURCE,
            "src/report.py": "# Databricks notebook source\nprint(1)\n",
            "sales.lvdash.json": '{"pages": []}',
        }
    )


def test_a_development_target_gives_everything_the_name_of_its_user(shop: Folder) -> None:
    desired = shop.state()
    assert (desired.target, desired.development, desired.workspace.file_path) == ("dev", True, FILES)
    names = {str(r.key): r.settings.get("name", r.settings.get("display_name")) for r in desired.resources}
    assert names == {
        "schemas.shop": "dev_ada_l_shop",
        "volumes.raw": "raw",
        "pipelines.orders": "[dev ada_l] orders",
        "dashboards.sales": "[dev ada_l] sales",
        "jobs.nightly": "[dev ada_l] nightly",
    }
    pipeline, job, volume = (one(desired, key).settings for key in ("pipelines.orders", "jobs.nightly", "volumes.raw"))
    assert (volume["schema_name"], pipeline["schema"]) == ("dev_ada_l_shop", "dev_ada_l_shop")
    assert (pipeline["development"], pipeline["tags"]) == (True, {"dev": "ada_l"})
    assert (job["schedule"]["pause_status"], job["max_concurrent_runs"], job["tags"]) == ("PAUSED", 4, {"dev": "ada_l"})
    assert one(desired, "dashboards.sales").settings["dataset_schema"] == "dev_ada_l_shop"


def test_a_production_target_has_the_names_as_they_are_written(shop: Folder) -> None:
    desired = shop.state("prod")
    assert desired.workspace.root_path == "/Workspace/Shared/.bundle/shop/prod"
    pipeline, job = one(desired, "pipelines.orders"), one(desired, "jobs.nightly")
    assert (pipeline.settings["name"], pipeline.settings["schema"], pipeline.settings["catalog"]) == ("orders", "shop", "prod")
    assert "pause_status" not in job.settings["schedule"]
    assert pipeline.settings["run_as"] == job.settings["run_as"] == {"service_principal_name": "robot"}


def test_tasks_of_a_target_are_laid_over_those_with_the_same_key(shop: Folder) -> None:
    tasks = shop.resource("jobs.nightly", "prod").settings["tasks"]
    assert [task["task_key"] for task in tasks] == ["go", "report"]
    assert tasks[0] == {"task_key": "go", "pipeline_task": {"pipeline_id": "${resources.pipelines.orders.id}"}, "timeout_seconds": 60}


def test_references_to_ids_stay_and_those_to_names_are_filled_in(shop: Folder) -> None:
    tasks = shop.resource("jobs.nightly").settings["tasks"]
    assert tasks[0]["pipeline_task"] == {"pipeline_id": "${resources.pipelines.orders.id}"}
    assert tasks[1]["notebook_task"] == {"notebook_path": f"{FILES}/src/report", "base_parameters": {"pipeline": "[dev ada_l] orders"}}


def test_a_complex_variable_gives_a_mapping_and_its_values_are_texts(shop: Folder) -> None:
    assert shop.resource("pipelines.orders").settings["configuration"] == {"spark.a": "1", "spark.b": "true"}


def test_values_of_variables_win_in_the_order_flag_environment_overrides_target_default(shop: Folder) -> None:
    def catalog(**more: object) -> object:
        return shop.resource("pipelines.orders", "prod", **more).settings["catalog"]

    assert catalog() == "prod"
    shop.put({".databricks/bundle/prod/variable-overrides.json": '{"catalog": "file"}'})
    assert catalog() == "file"
    assert catalog(environ={"BUNDLE_VAR_catalog": "env"}) == "env"
    assert catalog(environ={"BUNDLE_VAR_catalog": "env"}, variables={"catalog": "flag"}) == "flag"


def test_a_variable_is_looked_up_only_where_it_is_used(shop: Folder) -> None:
    asked: list[tuple[str, str]] = []
    shop.state(lookup=lambda kind, name: asked.append((kind, name)) or "w1")
    assert asked == [("warehouse", "Small")]
    assert shop.resource("dashboards.sales").settings["warehouse_id"] == "warehouse-Small"
    assert "there is none here" in shop.mistakes(lookup=None)[0]


def test_paths_are_relative_to_their_file_and_become_paths_of_the_workspace(shop: Folder) -> None:
    settings = shop.resource("pipelines.orders").settings
    assert settings["root_path"] == f"{FILES}/src"
    assert settings["libraries"] == [{"glob": {"include": f"{FILES}/src/tables/**"}}]


def test_the_text_of_a_dashboard_is_its_files(shop: Folder) -> None:
    settings = shop.resource("dashboards.sales").settings
    assert settings["serialized_dashboard"] == '{"pages": []}'
    assert settings["parent_path"] == "/Workspace/Users/ada.l@example.com/.bundle/shop/dev/resources"


def test_permissions_of_resource_target_and_bundle_come_together(shop: Folder) -> None:
    desired = shop.state("prod")
    assert set(one(desired, "pipelines.orders").permissions) == {
        Permission("CAN_MANAGE", "group_name", "everybody"),
        Permission("CAN_RUN", "user_name", "ann@b.c"),
    }
    assert Permission("CAN_MANAGE_RUN", "user_name", "ann@b.c") in one(desired, "jobs.nightly").permissions
    assert Permission("CAN_READ", "group_name", "everybody") in one(desired, "dashboards.sales").permissions
    assert one(desired, "schemas.shop").permissions == (
        Permission("SELECT", "principal", "readers"),
        Permission("USE_SCHEMA", "principal", "readers"),
    )


def test_presets_that_are_written_win_over_those_of_the_mode(shop: Folder) -> None:
    text = "{mode: development, default: true, presets: {name_prefix: 'x_${workspace.current_user.short_name}_', tags: {team: a}"
    shop.bundle(SHOP.replace("{mode: development, default: true", text + ", jobs_max_concurrent_runs: 1, trigger_pause_status: PAUSED}"))
    job, schema = shop.resource("jobs.nightly").settings, shop.resource("schemas.shop").settings
    assert (job["name"], job["tags"], job["max_concurrent_runs"]) == ("x_ada_l_nightly", {"dev": "ada_l", "team": "a"}, 1)
    assert schema["name"] == "x_ada_l_shop"


def test_a_continuous_pipeline_rests_in_development(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("      schema: shop\n", "      schema: shop\n      continuous: true\n")})
    assert shop.resource("pipelines.orders").settings["continuous"] is False
    assert shop.resource("pipelines.orders", "prod").settings["continuous"] is True


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            "{mode: development, workspace: {root_path: /Shared/x}}",
            "workspace.root_path of a development target is the same for every user",
        ),
        ("{mode: development, presets: {name_prefix: 'test '}}", "the prefix 'test ' of a development target is the same for every user"),
        ("{mode: development, presets: {trigger_pause_status: UNPAUSED}}", "a development target cannot start all of its jobs by itself"),
        ("{mode: production}", "a production target needs a workspace.root_path that does not depend"),
        (
            "{mode: production, workspace: {root_path: '~/x'}}",
            "a production target needs a workspace.root_path that does not depend",
        ),
    ],
)
def test_what_a_mode_demands(shop: Folder, target: str, expected: str) -> None:
    shop.bundle(SHOP.split("targets:")[0] + f"targets:\n  t: {target}\n")
    assert expected in "\n".join(shop.mistakes())


def test_production_refuses_pipelines_in_development_mode(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("      schema: shop\n", "      schema: shop\n      development: true\n")})
    assert shop.mistakes("prod") == [
        "CONFIG_INVALID resources/all.yml, line 10: a pipeline of a production target cannot be in development mode"
    ]


def test_a_service_principal_may_deploy_production_to_its_own_folder(shop: Folder) -> None:
    shop.bundle(SHOP.split("targets:")[0] + "targets:\n  prod: {mode: production}\n")
    root = f"/Workspace/Users/{ROBOT.user_name}/.bundle/shop/prod"
    assert shop.state(user=ROBOT).workspace.root_path == root


def test_a_volume_outside_of_the_bundles_schemas_would_be_everybodys(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("schema_name: shop", "schema_name: landing")})
    assert shop.mistakes() == [
        "CONFIG_INVALID resources/all.yml, line 5: volumes.raw would be the same volume for every user of a development target:"
        " main.landing.raw"
    ]
    assert shop.resource("volumes.raw", "prod").settings["schema_name"] == "landing"


def test_two_users_have_two_deployments(shop: Folder) -> None:
    ada, bob = shop.state(user=ADA), shop.state(user=BOB)
    assert ada.workspace.state_path != bob.workspace.state_path
    assert {r.settings.get("name") for r in ada.resources} & {r.settings.get("name") for r in bob.resources} == {"raw", None}


def test_lifecycle_says_what_is_kept_and_what_is_started(shop: Folder) -> None:
    text = RESOURCES.replace("      schema: shop\n", "      schema: shop\n      lifecycle: {prevent_destroy: true, started: false}\n")
    pipeline = shop.put({"resources/all.yml": text}).resource("pipelines.orders")
    assert (pipeline.prevent_destroy, pipeline.start, "lifecycle" in pipeline.settings) == (True, False, False)


def test_the_target_is_that_of_the_environment_or_of_the_tool_settings(shop: Folder) -> None:
    assert shop.state(environ={"LAKELET_TARGET": "prod"}).target == "prod"
    shop.put({"pyproject.toml": '[tool.lakelet]\ntarget = "prod"\n'})
    assert shop.state().target == "prod"
    assert shop.state("dev").target == "dev"


def test_a_bundle_without_targets_is_the_target_default(shop: Folder) -> None:
    shop.bundle(SHOP.split("targets:")[0])
    desired = shop.state()
    assert (desired.target, desired.development) == ("default", False)
    assert desired.workspace.root_path == "/Workspace/Users/ada.l@example.com/.bundle/shop/default"


def test_the_branch_of_a_production_target_is_the_one_that_is_deployed(shop: Folder) -> None:
    commit = "0123456789" * 4
    shop.put({".git/HEAD": "ref: refs/heads/feature\n", ".git/packed-refs": f"{commit} refs/heads/feature\n"})
    shop.bundle(SHOP.replace("    variables: {catalog: prod}\n", "    variables: {catalog: prod}\n    git: {branch: main}\n"))
    assert [one.split(": ", 1)[1] for one in shop.mistakes("prod")] == [
        "the target is deployed from the branch main, and feature is checked out"
    ]
    shop.put({".git/HEAD": "ref: refs/heads/main\n"})
    assert shop.state("prod").target == "prod"


def test_the_address_of_the_repository_comes_without_a_password(shop: Folder) -> None:
    config = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://me:secret@example.com/shop.git\n\tfetch = x\n'
    shop.put({".git/HEAD": "ref: refs/heads/main\n", ".git/config": config})
    tags = "    orders:\n      tags: {at: '${bundle.git.origin_url}'}\n"
    shop.put({"resources/all.yml": RESOURCES.replace("    orders:\n", tags)})
    assert shop.resource("pipelines.orders").settings["tags"]["at"] == "https://example.com/shop.git"


def test_branch_and_commit_are_known_to_references(shop: Folder) -> None:
    commit = "0123456789" * 4
    shop.put({".git/HEAD": "ref: refs/heads/feature\n", ".git/refs/heads/feature": commit})
    shop.put(
        {
            "resources/all.yml": RESOURCES.replace(
                "    orders:\n", "    orders:\n      tags: {at: '${bundle.git.branch} ${bundle.git.commit}'}\n"
            )
        }
    )
    assert shop.resource("pipelines.orders").settings["tags"]["at"] == f"feature {commit}"


def test_a_production_target_in_the_folder_of_a_person_gets_a_remark(shop: Folder) -> None:
    shop.bundle(SHOP.replace("/Shared/.bundle/${bundle.name}/", "/Users/ann@b.c/.bundle/"))
    assert [text for text, _ in shop.state("prod").remarks] == [
        "workspace.root_path of a production target is a folder of ann@b.c; /Workspace/Shared is nobody's"
    ]
    assert shop.state("prod").workspace.root_path == "/Workspace/Users/ann@b.c/.bundle/prod"


def test_a_production_target_that_does_not_say_whose_it_is_gets_a_remark(shop: Folder) -> None:
    shop.bundle(SHOP.split("permissions:")[0] + "targets:\n  prod: {mode: production, workspace: {root_path: /Shared/x}}\n")
    assert [text.split(" of ")[0] for text, _ in shop.state().remarks] == ["neither run_as nor permissions"]
    assert shop.state(user=ROBOT).remarks == ()


def test_the_path_of_a_volume_is_known_before_it_is_made(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("${var.spark}", "{landing: '${resources.volumes.raw.volume_path}/json'}")})
    assert shop.resource("pipelines.orders", "prod").settings["configuration"] == {"landing": "/Volumes/prod/shop/raw/json"}


def test_a_variable_of_several_values_needs_no_type(shop: Folder) -> None:
    shop.put({"databricks.yml": SHOP.replace("type: complex, ", "")})
    assert shop.resource("pipelines.orders", "prod").settings["configuration"] == {"spark.a": "1", "spark.b": "true"}


def test_tables_are_not_deleted_with_a_pipeline_because_the_bundle_says_so(shop: Folder) -> None:
    shop.put({"resources/all.yml": RESOURCES.replace("root_path: ../src", "root_path: ../src\n      cascade_on_destroy: true")})
    state = shop.state("prod")
    assert "cascade_on_destroy" not in one(state, "pipelines.orders").settings
    said = "cascade_on_destroy of pipelines.orders has no effect: tables are deleted with --with-data pipelines.orders only"
    assert [where.line for text, where in state.remarks if text == said] == [11]


def test_settings_of_a_cluster_are_texts_as_the_workspace_takes_them(shop: Folder) -> None:
    cluster = "{num_workers: 2, spark_version: 14.3, spark_conf: {spark.speculation: false, spark.x: 1}, custom_tags: {on: true}}"
    job = f"nightly:\n      job_clusters: [{{job_cluster_key: k, new_cluster: {cluster}}}]"
    shop.put({"resources/all.yml": RESOURCES.replace("nightly:", job, 1)})
    (found,) = shop.resource("jobs.nightly", "prod").settings["job_clusters"]
    assert found["new_cluster"] == {
        "num_workers": 2,
        "spark_version": "14.3",
        "spark_conf": {"spark.speculation": "false", "spark.x": "1"},
        "custom_tags": {"on": "true"},
    }
