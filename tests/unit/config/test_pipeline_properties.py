"""`pipelines.*` settings: each is honoured, noted with a reason, or refused for its value (RE-20)."""

from __future__ import annotations

import textwrap

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config.properties import duration, examine, interval, look_up, reset_allowed
from lakelet.config.update_config import load_config
from lakelet.language.api import DLT
from lakelet.language.declaration_checks import check_properties
from lakelet.language.registry import Registry, recording

DOCUMENTED = (
    "pipelines.autoOptimize.managed",
    "pipelines.autoOptimize.zOrderCols",
    "pipelines.cdc.tombstoneGCThresholdInSeconds",
    "pipelines.channel",
    "pipelines.dropInactiveTables",
    "pipelines.enableTrackHistory",
    "pipelines.externalMetadata.enabled",
    "pipelines.externalSink.enabled",
    "pipelines.metrics.flowTimeReporter.enabled",
    "pipelines.reset.allowed",
    "pipelines.tableManagedByMultiplePipelinesCheck.enabled",
    "pipelines.trigger",
    "pipelines.trigger.interval",
)
"""The settings that the public documentation of pipelines names."""


def told(settings, of="table", **more):
    return [found.text for found in examine(settings, of=of, **more)]


@pytest.mark.parametrize(
    ("text", "seconds"), [("10 seconds", 10), ("1 second", 1), ("2 minutes", 120), ("1 HOUR", 3600), ("3 days", 259200), ("5seconds", 5)]
)
def test_an_interval_is_a_number_and_a_unit(text, seconds):
    assert interval(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "ten seconds", "-1 seconds", "1.5 hours", "2 weeks", "10 s"])
def test_other_intervals_are_refused_with_an_example(text):
    with pytest.raises(ValueError, match="10 seconds"):
        interval(text)


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("5", 5), ("200ms", 0.2), ("2min", 120), ("1h", 3600)])
def test_times_of_spark_settings(text, seconds):
    assert duration(text) == seconds


def test_keys_have_no_case():
    assert look_up({"PIPELINES.Reset.Allowed": "false"}, "pipelines.reset.allowed") == "false"
    assert not reset_allowed({"Pipelines.reset.allowed": " FALSE "})
    assert reset_allowed({})


@pytest.mark.parametrize(
    "settings",
    [
        {"pipelines.reset.allowed": "false"},
        {"pipelines.trigger.interval": "10 seconds"},
        {"pipelines.maxFlowRetryAttempts": "3"},
        {"pipelines.cdc.tombstoneGCThresholdInSeconds": "86400"},
        {"pipelines.autoOptimize.managed": "false", "pipelines.autoOptimize.zOrderCols": "a,b"},
        {"delta.appendOnly": "true", "quality": "gold", "spark.sql.shuffle.partitions": "4"},
    ],
)
def test_what_is_honoured_is_not_noted(settings):
    assert told(settings) == []


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("pipelines.channel", "PREVIEW", "one engine"),
        ("pipelines.externalSink.enabled", "true", "sinks need no switch"),
        ("pipelines.trigger", "RealTime", "no real-time mode"),
        ("pipelines.resetAllowed", "false", "did you mean pipelines.reset.allowed"),
        ("pipelines.unheard.of", "1", "no such setting is known"),
        ("pipelines.numUpdateRetryAttempts", "1", "belongs into the pipeline's configuration"),
    ],
)
def test_what_has_no_effect_is_noted_with_the_reason(key, value, why):
    (text,) = told({key: value})
    assert text.startswith(f"{key} has no effect here: ")
    assert why in text


def test_a_setting_of_tables_in_the_configuration_and_retries_in_development_mode_have_no_effect():
    assert "belongs into a table's properties" in told({"pipelines.reset.allowed": "false"}, of="pipeline")[0]
    assert "development mode" in told({"pipelines.maxFlowRetryAttempts": "3"}, of="pipeline", development=True)[0]
    assert told({"pipelines.maxFlowRetryAttempts": "0"}, of="pipeline", development=True) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pipelines.reset.allowed", "maybe"),
        ("pipelines.trigger.interval", "soon"),
        ("pipelines.autoOptimize.managed", "no"),
        ("pipelines.maxFlowRetryAttempts", "-1"),
        ("pipelines.cdc.tombstoneGCThresholdInSeconds", "2 days"),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_an_error_of_the_definition(key, value):
    registry = Registry(Namespace())
    with recording(registry):
        DLT["create_streaming_table"]("orders", table_properties={key: value})
    check_properties(registry.definitions(complete=False), registry)
    (error,) = registry.errors
    assert error.code == "PROPERTY_INVALID"
    assert error.dataset == "main.default.orders"
    assert error.where.file.endswith("test_pipeline_properties.py")
    assert key in error.what


def bundle(folder, configuration):
    text = f"""
        resources:
          pipelines:
            etl:
              libraries: [{{file: {{path: etl.py}}}}]
              configuration:
                {configuration}
        targets: {{dev: {{mode: development}}}}
    """
    (folder / "databricks.yml").write_text(textwrap.dedent(text))
    (folder / "etl.py").write_text("import dlt\n")
    return folder


def test_the_configuration_of_a_bundle_is_noted_with_its_line(tmp_path):
    config = load_config([], cwd=bundle(tmp_path, "pipelines.maxFlowRetryAttempt: 3"), environ={})
    (remark,) = config.remarks
    assert "did you mean pipelines.maxFlowRetryAttempts" in remark[0]
    assert str(remark[1]) == "databricks.yml, line 7"


def test_parameters_of_the_command_line_have_no_line(tmp_path):
    (tmp_path / "etl.py").write_text("import dlt\n")
    config = load_config(["etl.py"], cwd=tmp_path, environ={}, params={"pipelines.channel": "PREVIEW"})
    assert [str(where) for _, where in config.remarks] == ["the configuration"]
    with pytest.raises(LakeletError, match=r"pipelines\.trigger\.interval is 'soon'") as caught:
        load_config(["etl.py"], cwd=tmp_path, environ={}, params={"pipelines.trigger.interval": "soon"})
    assert caught.value.code == "PROPERTY_INVALID"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_setting_that_the_documentation_names_is_known(name):
    assert "no such setting" not in " ".join(told({name: "1"}))
