"""The table of Delta's properties against Delta itself (TP-10)."""

from __future__ import annotations

import pytest

from lakelet.config import delta_properties

SWITCHES = ("true", "TRUE", "yes", "")
TIMES = (
    "interval 30 days",
    "30 Days",
    "1 week 12 hours",
    "6 months",
    "30",
    "1.5 days",
    "999999 seconds 1 microsecond",
    "-31 days",
    "30days",
)
NUMBERS = ("1", "0", "-1", "-2", "1.5", "2147483648", "many", "+5")
OTHER = ("none", "Name", "Serializable", "serializable", "v2", "iceberg,hudi", "3", "7", "8", "1.0.0", "a, b.c, `d e`", "a b", "{}", "x")


def values_of(name):
    if name.endswith("Duration"):
        return TIMES
    switch = delta_properties.KNOWN[name.lower()].read is delta_properties.KNOWN["delta.appendonly"].read
    return SWITCHES if switch else (*NUMBERS, *OTHER)


@pytest.fixture
def of_delta(spark):
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return spark._jvm.java.lang.Class.forName("org.apache.spark.sql.delta.DeltaConfigs$", True, loader).getField("MODULE$").get(None)


@pytest.mark.long
def test_names_and_values_are_those_that_delta_accepts(spark, of_delta):
    entries = {str(entry.key()): entry for entry in dict(of_delta.entries()).values()}
    assert sorted(known.name for known in delta_properties.KNOWN.values()) == sorted(entries)
    to_scala = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap
    generous = "spark.databricks.delta.vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility"
    spark.conf.set(generous, "false")  # about two properties together: a notice here
    different = []
    for name in entries:
        if "-preview" in name:
            continue  # JSON of the coordinators that Delta can load
        for value in set(values_of(name)) - ({"+5"} if name.endswith("StatsColumns") else set()):
            try:
                accepted = not of_delta.validateConfigurations(to_scala({name: value})).isEmpty()
            except Exception:
                accepted = False
            ours = not any(remark.code for remark in delta_properties.examine({name: value}))
            if ours != accepted:
                different.append((name, value, accepted))
    spark.conf.unset(generous)
    assert different == [], different


def test_features_are_those_that_delta_has(spark):
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    features = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.delta.TableFeature$", True, loader).getField("MODULE$").get(None)
    known = {feature for feature in delta_properties.FEATURES if features.featureNameToFeature(feature).isDefined()}
    assert known == delta_properties.FEATURES
    assert not features.featureNameToFeature("adaptiveSomething").isDefined()
