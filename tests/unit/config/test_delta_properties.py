"""Table properties `delta.*`: accepted as Delta and Databricks have them, refused by name and value (TP-10 to TP-14)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config import delta_properties
from lakelet.config.update_config import load_config
from lakelet.language.api import DLT
from lakelet.language.declaration_checks import check_properties
from lakelet.language.registry import Registry, recording


def checked(parameters=None, **tables):
    """The registry after some tables were declared with properties."""
    registry = Registry(Namespace())
    with recording(registry):
        for name, properties in tables.items():
            DLT["create_streaming_table"](name, table_properties=properties)
    check_properties(registry.definitions(complete=False), registry, parameters)
    return registry


def test_all_unknown_names_and_wrong_values_are_told_together_each_with_its_place_and_the_nearest_name():
    registry = checked(
        one={"delta.enableChangeDatFeed": "true", "delta.appendOnly": "yes"},
        two={"delta.logRetentionDuration": "a month", "delta.isolationLevel": "Read Committed", "delta.feature.rowTracking": "on"},
        three={"delta.appendOnly": "true", "DELTA.APPENDONLY": "false", "delta.columnMapping.maxColumnId": "3"},
    )
    told = [(str(e.dataset).rsplit(".", 1)[-1], e.code, e.what) for e in registry.errors]
    assert told == [
        ("one", "PROPERTY_UNKNOWN", "Delta has no property delta.enableChangeDatFeed"),
        ("one", "PROPERTY_INVALID", "delta.appendOnly is 'yes': true or false is expected"),
        ("two", "PROPERTY_INVALID", told[2][2]),
        ("two", "PROPERTY_INVALID", "delta.isolationLevel is 'Read Committed': Serializable is expected"),
        ("two", "PROPERTY_INVALID", "delta.feature.rowTracking is 'on': supported or enabled is expected"),
        ("three", "PROPERTY_INVALID", "delta.appendOnly and DELTA.APPENDONLY are one property"),
        ("three", "PROPERTY_INVALID", "delta.columnMapping.maxColumnId cannot be declared: Delta sets it itself"),
    ]
    assert "'interval 7 days'" in told[2][2]
    assert registry.errors[0].nearest[0] == "delta.enableChangeDataFeed"
    assert {e.where.file.rsplit("/", 1)[-1] for e in registry.errors} == {"test_delta_properties.py"}
    assert all(e.where.line for e in registry.errors)


PUBLIC = {
    "quality": "silver",
    "pipelines.reset.allowed": "false",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.autoOptimize.optimizeWrite": "true",
    "delta.columnMapping.mode": "name",
    "delta.minReaderVersion": "2",
    "delta.minWriterVersion": "5",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "7 days",
    "delta.dataSkippingStatsColumns": "id, payload.at, `odd name`",
    "delta.feature.timestampNtz": "supported",
    "delta.constraints.positive": "amount > 0",
}


def test_properties_of_delta_are_accepted_without_a_word():
    registry = checked(orders=PUBLIC)
    assert registry.errors == []
    assert registry.notices == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((name, "1") for name in delta_properties.HOSTED),
        ("delta.tuneFileSizesForRewrites", "true"),
        ("delta.autoOptimize.autoCompact", "auto"),
        ("delta.isolationLevel", "WriteSerializable"),
        ("delta.feature.adaptiveSomething", "supported"),
        ("delta.universalFormat.enabledFormats", "compatibility"),
        ("delta.universalFormat.enabledFormats", "iceberg"),
    ],
)
def test_what_only_the_hosted_service_has_is_accepted_with_the_reason_why_it_has_no_effect(key, value):
    registry = checked(orders={key: value})
    assert registry.errors == []
    (notice,) = registry.notices
    assert notice.text.startswith(key)
    assert "has no effect here: " in notice.text


def test_a_name_without_its_prefix_and_a_log_shorter_than_its_files_are_noted():
    registry = checked(orders={"enableChangeDataFeed": "true", "delta.logRetentionDuration": "1 day"})
    assert registry.errors == []
    assert ["did you mean delta.enableChangeDataFeed?" in registry.notices[0].text, "18.0" in registry.notices[1].text] == [True, True]


def test_any_name_is_accepted_where_deltas_own_setting_says_so():
    registry = checked({delta_properties.ANY_NAME: "true"}, orders={"delta.ourOwn": "1"})
    assert registry.errors == []
    assert "Delta has no property delta.ourOwn" in registry.notices[0].text


def test_tables_get_the_spelling_of_delta_and_nothing_that_it_fails_with():
    given = {
        "DELTA.enablechangedatafeed": "true",
        "Quality": "gold",
        "delta.feature.timestampNtz": "Enabled",
        "delta.feature.none": "supported",
    }
    given |= {"delta.isolationLevel": "WriteSerializable", "delta.targetfilesize": "10mb"}
    stored = {"delta.enableChangeDataFeed": "true", "Quality": "gold", "delta.feature.timestampntz": "supported"}
    assert delta_properties.stored(given) == stored | {"delta.targetFileSize": "10mb"}


def test_defaults_of_the_pipelines_configuration_are_checked_too(tmp_path):
    (tmp_path / "etl.py").write_text("import dlt\n")
    start = delta_properties.DEFAULTS

    def remarks(**params):
        return [text for text, _ in load_config(["etl.py"], cwd=tmp_path, environ={}, params=params).remarks]

    assert remarks(**{start + "appendOnly": "false", start + "feature.timestampNtz": "supported"}) == []
    assert "did you mean" in remarks(**{start + "apendOnly": "false"})[0]
    assert f"Delta reads {start}appendOnly" in remarks(**{start + "appendonly": "false"})[0]
    with pytest.raises(LakeletError, match="appendOnly is 'yes'") as caught:
        remarks(**{start + "appendOnly": "yes"})
    assert caught.value.code == "PROPERTY_INVALID"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("delta.columnMapping", "delta.columnMapping.mode"),
        ("delta.enableChangeDataFeeds", "delta.enableChangeDataFeed"),
        ("delta.autoOptimise.optimizeWrite", "delta.autoOptimize.optimizeWrite"),
    ],
)
def test_the_nearest_name_of_a_misspelt_property_is_one_that_a_table_may_have(written, meant):
    (remark,) = delta_properties.examine({written: "true"})
    assert remark.nearest[0] == meant
    assert "delta.columnMapping.maxColumnId" not in remark.nearest


def test_a_property_with_a_misspelt_prefix_is_noticed():
    (remark,) = delta_properties.examine({"detla.appendOnly": "true"})
    assert "did you mean delta.appendOnly?" in remark.text
