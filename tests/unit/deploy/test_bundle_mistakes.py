"""Mistakes of bundle files: all at once, each with its file, its line and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lakelet.deploy.bundle import workspace_of
from tests.unit.deploy.bundles import SOURCE, Folder

PIPELINE = """\
bundle: {{name: shop}}
resources:
  pipelines:
    orders:
      libraries: [{{file: {{path: a.py}}}}]
      {}
"""
JOB = """\
bundle: {{name: shop}}
resources:
  jobs:
    nightly:
      {}
      tasks:
        - task_key: go
          pipeline_task: {{pipeline_id: x}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path).put({"a.py": SOURCE})


def test_all_mistakes_of_several_files_come_together(folder: Folder) -> None:
    folder.bundle(
        """\
        bundle: {name: shop}
        include: [resources/*.yml]
        permisions: []
        variables:
          catalog: {defualt: main}
        targets:
          dev: {mode: developmnt, default: true}
          prod:
            worksapce: {}
            presets: {name_prefx: x}
        """
    ).put(
        {
            "resources/orders.yml": """\
            resources:
              pipelines:
                orders:
                  catalog: ${var.catalogue}
                  channel: STABLE
                  libary: []
                  notifications:
                    - alerts: [on-update-failed]
                      email_recipients: [me]
                  permissions: [{level: CAN_EDIT, user_name: a@b.c}]
            """,
            "resources/jobs.yml": """\
            resources:
              jobs:
                nightly:
                  schedule: {quartz_cron_expression: 0 6 * * *, timezone_id: Europe/Berln}
                  max_concurrent_runs: many
                  tasks:
                    - pipeline_task: {pipeline_id: "${resources.pipelines.order.id}"}
            """,
        }
    )
    assert folder.mistakes() == [
        "CONFIG_INVALID databricks.yml, line 3: a bundle file has no key 'permisions' → permissions",
        "CONFIG_INVALID databricks.yml, line 5: the variable 'catalog' has no key 'defualt' → default",
        "CONFIG_INVALID databricks.yml, line 7: mode cannot be 'developmnt' → development",
        "CONFIG_INVALID databricks.yml, line 9: the target 'prod' has no key 'worksapce' → workspace",
        "CONFIG_INVALID databricks.yml, line 10: presets has no key 'name_prefx' → name_prefix",
        "CONFIG_INVALID resources/jobs.yml, line 4: quartz_cron_expression '0 6 * * *' has 5 fields and not 6 or 7 (seconds, minutes,"
        " hours, day of month, month, day of week, year): Quartz begins with the seconds",
        "CONFIG_INVALID resources/jobs.yml, line 4: timezone_id 'Europe/Berln' is not a time zone; for example: Europe/Berlin, UTC",
        'CONFIG_INVALID resources/jobs.yml, line 5: max_concurrent_runs must be a whole number, not "many"',
        "CONFIG_INVALID resources/jobs.yml, line 7: the bundle declares no resource pipelines.order → pipelines.orders",
        "CONFIG_INVALID resources/jobs.yml, line 7: a task needs 'task_key'",
        "CONFIG_INVALID resources/orders.yml, line 3: pipelines.orders has no libraries: nothing says which files it runs",
        "CONFIG_INVALID resources/orders.yml, line 4: the variable 'catalogue' is not declared → catalog",
        "CONFIG_INVALID resources/orders.yml, line 5: channel cannot be 'STABLE'",
        "CONFIG_INVALID resources/orders.yml, line 6: a pipeline has no key 'libary' → libraries",
        "CONFIG_INVALID resources/orders.yml, line 8: an item of alerts cannot be 'on-update-failed' → on-update-failure,"
        " on-update-fatal-failure",
        "CONFIG_INVALID resources/orders.yml, line 9: an item of email_recipients 'me' is not an e-mail address",
        "CONFIG_INVALID resources/orders.yml, line 10: level cannot be 'CAN_EDIT' → CAN_VIEW",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("edition: PROF", "edition cannot be 'PROF' → PRO"),
        ("serverless: maybe", 'serverless must be true or false, not "maybe"'),
        ("configuration: [a]", "configuration must be a mapping of keys to values, not a list"),
        ("name: {a: b}", "name must be a text, not a mapping"),
        ("tags: {a: [b]}", "a of tags must be a text, not a list"),
        ("permissions: [{level: CAN_VIEW}]", "a permission needs one of user_name, group_name, service_principal_name"),
        ("run_as: {user_name: a, group_name: b}", None),
        ("lifecycle: {prevent_destory: true}", "a lifecycle has no key 'prevent_destory' → prevent_destroy"),
        ("root_path: ./srx", "the folder './srx' does not exist"),
        ("event_log: {catalog: main}", "event_log needs 'name'"),
        ("{schema: a, target: b}", None),
    ],
)
def test_a_wrong_value_of_a_pipeline(folder: Folder, text: str, expected: str | None) -> None:
    if expected is None:
        expected = {
            "run_as: {user_name: a, group_name: b}": "run_as needs one of user_name, group_name, service_principal_name,"
            " not user_name and group_name",
            "{schema: a, target: b}": "a pipeline cannot have schema and target",
        }[text]
        text = text.strip("{}").replace(", target", "\n      target") if text.startswith("{") else text
    found = folder.bundle(PIPELINE.format(text)).mistakes()
    assert [one.split(": ", 1)[1] for one in found] == [expected]
    assert found[0].startswith("CONFIG_INVALID databricks.yml, line ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trigger: {}", "a trigger needs one of periodic, file_arrival, table_update, model"),
        ("trigger: {periodic: {interval: 1, unit: HOUR}}", "unit cannot be 'HOUR' → HOURS"),
        ("trigger: {periodic: {interval: 0, unit: HOURS}}", "interval must be at least 1, not 0"),
        ("trigger: {file_arrival: {}}", "a file arrival trigger needs 'url'"),
        ("continuous: {pause_status: PAUSE}", "pause_status cannot be 'PAUSE' → PAUSED, UNPAUSED"),
        ("health: {rules: [{metric: RUN_DURATION, op: GREATER_THAN, value: 3}]}", "metric cannot be 'RUN_DURATION' → RUN_DURATION_SECONDS"),
        ("queue: true", "queue must be a mapping with keys such as enabled, not true"),
        ("parameters: {a: b}", "parameters must be a list, not a mapping"),
        ("max_concurent_runs: 2", "a job has no key 'max_concurent_runs' → max_concurrent_runs"),
    ],
)
def test_a_wrong_value_of_a_job(folder: Folder, text: str, expected: str) -> None:
    assert folder.bundle(JOB.format(text)).mistakes() == [f"CONFIG_INVALID databricks.yml, line 5: {expected}"]


@pytest.mark.parametrize(
    ("cron", "wrong"),
    [
        ("0 0 6 * * ?", None),
        ("0 15 10 ? * MON-FRI", None),
        ("0 0/5 14,18 * * ?", None),
        ("0 0 12 L * ? 2026", None),
        ("0 0 12 ? * 6#3", None),
        ("* * * * * *", "needs '?' as day of month or as day of week, and not as both"),
        ("0 60 * * * ?", "has '60' as minutes, which goes from 0 to 59"),
        ("0 0 6 * * 8", "has '8' as day of week, which goes from 1 to 7"),
        ("0 0 6 * FOO ?", "has 'FOO' as month, which goes from 1 to 12"),
    ],
)
def test_the_shape_of_a_schedule(folder: Folder, cron: str, wrong: str | None) -> None:
    folder.bundle(JOB.format(f'schedule: {{quartz_cron_expression: "{cron}", timezone_id: UTC}}'))
    if wrong is None:
        assert folder.resource("jobs.nightly").settings["schedule"]["quartz_cron_expression"] == cron
    else:
        assert folder.mistakes() == [f"CONFIG_INVALID databricks.yml, line 5: quartz_cron_expression {cron!r} {wrong}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("libraries: [{glob: {include: '*.py'}}, {file: {path: a.py}}]", "has a glob beside a file or notebook, which Databricks refuses"),
        ("libraries: []", "has no libraries: nothing says which files it runs"),
        ("libraries: [{file: {path: a.py}}], serverless: true, clusters: [{num_workers: 1}]", "is serverless and has clusters"),
        (
            f"libraries: [{{file: {{path: a.py}}}}], tags: {dict.fromkeys(map(str, range(26)), 'x')}",
            "has 26 tags, and Databricks takes 25",
        ),
    ],
)
def test_settings_of_a_pipeline_that_do_not_go_together(folder: Folder, text: str, expected: str) -> None:
    folder.bundle(f"bundle: {{name: shop}}\nresources: {{pipelines: {{p: {{{text}}}}}}}\n")
    assert folder.mistakes() == [f"CONFIG_INVALID databricks.yml, line 2: pipelines.p {expected}"]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ("[{a: [x]}]", ["jobs.j has no task 'x' to depend on"]),
        ("[{a: [b]}, {b: [a]}]", ["tasks of jobs.j depend on one another"]),
        ("[{a: []}, {a: []}]", ["jobs.j has two items of tasks with the task_key 'a', the first in databricks.yml, line 5"]),
    ],
)
def test_tasks_of_a_job_depend_on_those_that_exist(folder: Folder, tasks: str, expected: list[str]) -> None:
    lines = ["bundle: {name: shop}", "resources:", "  jobs:", "    j: {tasks: ["]
    for task in yaml.safe_load(tasks):
        ((key, before),) = task.items()
        depends = ", ".join(f"{{task_key: {one}}}" for one in before)
        lines.append(f"      {{task_key: {key}, depends_on: [{depends}], condition_task: {{op: EQUAL_TO, left: a, right: b}}}},")
    folder.bundle("\n".join([*lines, "    ]}", ""]))
    assert [one.split(": ", 1)[1] for one in folder.mistakes()] == expected


def test_environments_and_clusters_of_tasks_are_declared(folder: Folder) -> None:
    task = "{task_key: t, environment_key: mian, spark_python_task: {python_file: a.py}}"
    text = f"environments: [{{environment_key: main}}]\n      tasks: [{task}]"
    folder.bundle(f"bundle: {{name: shop}}\nresources:\n  jobs:\n    j:\n      {text}\n")
    assert folder.mistakes() == ["CONFIG_INVALID databricks.yml, line 6: jobs.j has no 'mian' among its environments → main"]


def test_one_key_for_two_kinds_is_refused(folder: Folder) -> None:
    text = "resources:\n  schemas:\n    shop: {name: s, catalog_name: main}\n  jobs:\n    shop: {}\n"
    assert folder.bundle("bundle: {name: b}\n" + text).mistakes() == [
        "CONFIG_INVALID databricks.yml, line 6: the key 'shop' is that of schemas.shop and of jobs.shop"
    ]


def test_one_key_in_two_files_is_refused(folder: Folder) -> None:
    text = "resources: {{schemas: {{s: {{name: {0}, catalog_name: main}}}}}}\n"
    folder.bundle("bundle: {name: shop}\ninclude: [r/*.yml]\n").put({"r/a.yml": text.format("a"), "r/b.yml": text.format("b")})
    assert folder.mistakes() == ["CONFIG_INVALID r/b.yml, line 1: the resource schemas.s is declared twice, first in r/a.yml, line 1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "artifacts: {default: {type: whl, path: ., command: make}}",
            "CONFIG_INVALID databricks.yml, line 2: an artifact has no key 'command'",
        ),
        ("python: {resources: ['load']}", "CONFIG_INVALID databricks.yml, line 2: 'load' names no function"),
        (
            "resources: {models: {m: {name: x}}}",
            "NOT_SUPPORTED_YET databricks.yml, line 2: resources of the kind 'models' are not supported yet",
        ),
        ("resources: {pipeline: {}}", "CONFIG_INVALID databricks.yml, line 2: resources has no kind 'pipeline' → pipelines"),
        ("variables: {w: {lookup: {warehous: x}}}", "CONFIG_INVALID databricks.yml, line 2: a lookup knows no 'warehous' → warehouse"),
        ("targets: {a: {default: true}, b: {default: true}}", None),
    ],
)
def test_what_a_bundle_cannot_say(folder: Folder, text: str, expected: str | None) -> None:
    expected = expected or "CONFIG_INVALID databricks.yml, line 2: several targets are marked as default: a, b"
    assert folder.bundle(f"bundle: {{name: shop}}\n{text}\n").mistakes() == [expected]


def test_an_unknown_target_is_refused_with_the_nearest(folder: Folder) -> None:
    folder.bundle("bundle: {name: shop}\ntargets: {dev: {}, prod: {}}\n")
    assert folder.mistakes("prd") == ["CONFIG_INVALID databricks.yml, line 1: there is no deployment target 'prd' → prod"]


def test_a_folder_without_a_bundle_and_a_file_that_is_no_yaml(folder: Folder) -> None:
    assert folder.mistakes()[0].endswith("holds no bundle")
    assert folder.bundle("bundle:\n  name: [").mistakes() == ["CONFIG_INVALID databricks.yml, line 2: databricks.yml is not valid YAML"]


def test_references_in_a_circle_are_refused(folder: Folder) -> None:
    folder.bundle("bundle: {name: '${var.a}'}\nvariables:\n  a: {default: '${var.b}'}\n  b: {default: '${var.a}'}\n")
    assert "${var.a} refers to itself" in folder.mistakes()[0]


def test_host_and_profile_are_known_before_the_user(folder: Folder) -> None:
    targets = "{dev: {workspace: {host: 'https://${var.h}.net'}}, p: {workspace: {profile: P}}}"
    folder.bundle(f"bundle: {{name: shop}}\nvariables: {{h: {{default: adb}}}}\ntargets: {targets}\n")
    assert workspace_of(folder.root, None, environ={}, cwd=folder.root) == {"host": "https://adb.net"}
    assert workspace_of(folder.root, "p", environ={}, cwd=folder.root) == {"profile": "P"}
    assert workspace_of(folder.root, None, environ={"BUNDLE_VAR_h": "other"}, cwd=folder.root)["host"] == "https://other.net"


def test_what_a_bundle_says_of_signing_in_is_handed_on(folder: Folder) -> None:
    workspace = "{host: https://adb.net, auth_type: azure-msi, azure_use_msi: true, azure_tenant_id: '${var.t}', root_path: /Shared/x}"
    folder.bundle(f"bundle: {{name: shop}}\nvariables: {{t: {{default: T}}}}\nworkspace: {workspace}\n")
    said = {"host": "https://adb.net", "auth_type": "azure-msi", "azure_use_msi": "true", "azure_tenant_id": "T"}
    assert workspace_of(folder.root, None, environ={}, cwd=folder.root) == said
    off = "{host: https://adb.net, azure_use_msi: false}"
    folder.bundle(f"bundle: {{name: shop}}\nworkspace: {off}\n")
    assert workspace_of(folder.root, None, environ={}, cwd=folder.root) == {"host": "https://adb.net"}


def test_a_principal_that_is_no_text_is_a_mistake(folder: Folder) -> None:
    folder.put({"a.py": SOURCE}).bundle(
        "bundle: {name: shop}\npermissions: [{level: CAN_VIEW, user_name: [ada]}]\n"
        "resources: {pipelines: {p: {libraries: [{file: {path: a.py}}]}}}\n"
    )
    assert folder.mistakes() == ["CONFIG_INVALID databricks.yml, line 2: user_name must be a text, not a list"]
