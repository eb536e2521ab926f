"""Kinds of store: what each client is told, and that no credential is in it."""

from __future__ import annotations

import re
import sys

import pytest

from lakelet.base.errors import LakeletError
from lakelet.files.paths import RemotePath, any_path
from lakelet.files.stores import (
    AZURE,
    GOOGLE,
    HDFS,
    KINDS,
    S3,
    AzureSettings,
    GoogleSettings,
    HadoopSettings,
    kind_of,
    scheme_of,
    stores_of,
)
from lakelet.spark.launch.environment import STORE_PACKAGES

SECRETS = {
    "AWS_ACCESS_KEY_ID": "word-1",
    "AWS_SECRET_ACCESS_KEY": "word-2",
    "AZURE_STORAGE_ACCOUNT_KEY": "word-3",
    "GOOGLE_APPLICATION_CREDENTIALS": "/word-4.json",
    "AZURE_CLIENT_SECRET": "word-5",
    "AZURE_CLIENT_ID": "word-6",
    "AZURE_TENANT_ID": "word-7",
}


def test_a_storage_may_lie_where_spark_has_a_client_to_write_with() -> None:
    places = ("gs://b/x", "s3://b/y", "s3a://b/z", "abfss://c@a.dfs.core.windows.net/", "hdfs://n:1/x", "/folder")
    assert stores_of(*places) == (GOOGLE, S3, AZURE, HDFS)
    assert {kind.jars for kind in KINDS if kind.jars} == STORE_PACKAGES.keys()
    assert (kind_of("file:/x"), kind_of("dbfs:/x"), kind_of("gs")) == (None, None, None)
    assert str(any_path("gs://b/x/")) == "gs://b/x"
    assert str(any_path("abfss://c@a.dfs.core.windows.net/x")) == "abfs://c@a.dfs.core.windows.net/x"
    assert scheme_of("GS://b/x") == "gs"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.schemes[0])
def test_no_credential_is_in_what_clients_are_told(kind) -> None:
    servers = {"AWS_ENDPOINT_URL": "http://h:1", "STORAGE_EMULATOR_HOST": "http://h:1", "AZURE_STORAGE_ENDPOINT": "http://h:1/a"}
    for left_out in (None, "AZURE_STORAGE_ACCOUNT_KEY"):
        found = kind.settings.of({**servers, **{name: value for name, value in SECRETS.items() if name != left_out}})
        told = f"{found} {found!r} {found.variables()} {found.delta_options()} {found.spark_settings()}"
        assert "word" not in told


def test_a_server_other_than_googles_is_named_to_each_client() -> None:
    found = GoogleSettings.of({"STORAGE_EMULATOR_HOST": "127.0.0.1:4443"})
    assert found == GoogleSettings.of({"STORAGE_EMULATOR_HOST": "http://127.0.0.1:4443/"})
    assert found.variables() == {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:4443"}
    assert found.delta_options() == {"google_base_url": "http://127.0.0.1:4443", "allow_http": "true"}
    assert found.spark_settings()["spark.hadoop.fs.gs.storage.root.url"] == "http://127.0.0.1:4443/"
    plain = GoogleSettings.of({})
    assert (plain.variables(), plain.delta_options(), str(plain)) == ({}, {}, "Google")
    assert "spark.hadoop.fs.gs.storage.root.url" not in plain.spark_settings()


def test_files_and_user_of_hadoop_come_from_the_environment() -> None:
    plain = HadoopSettings.of({})
    assert (plain.variables(), plain.class_path()) == ({}, ())
    assert str(plain) == "user of the process, no HADOOP_CONF_DIR"
    assert "dfs.client.failover.max.attempts" in plain.delta_options()
    found = HadoopSettings.of({"HADOOP_HOME": "/h", "HADOOP_USER_NAME": "ann"})
    assert (found.variables(), found.class_path(), found.delta_options()) == ({"HADOOP_USER_NAME": "ann"}, ("/h/etc/hadoop",), {})
    assert HadoopSettings.of({"HADOOP_HOME": "/h", "HADOOP_CONF_DIR": "/c"}).class_path() == ("/c",)


def test_without_its_client_a_path_on_hdfs_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(LakeletError) as caught:
        RemotePath("hdfs://127.0.0.1:1/lake").exists()
    assert caught.value.code == "HDFS_MISSING"
    assert "pip install 'lakelet[hdfs]'" in str(caught.value.todo)


def _told_to_java(environ: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix("spark.hadoop."): value for key, value in AzureSettings.of(environ).spark_settings().items()}


def test_a_server_other_than_azures_is_named_to_each_client() -> None:
    found = AzureSettings.of({"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/account/"})
    assert found.variables() == {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/account"}
    assert found.delta_options() == {"azure_storage_endpoint": "http://127.0.0.1:10000/account", "allow_http": "true"}
    told = _told_to_java(found.variables())
    assert told["fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert (told["fs.azure.account.hns.enabled"], told["fs.azure.fns.account.service.type"]) == ("false", "BLOB")
    assert told["fs.azure.always.use.https"] == "false"
    assert AzureSettings.of({"AZURE_STORAGE_ENDPOINT": "https://h/a"}).host == "h:443"


def test_azures_own_endpoint_is_found_by_its_clients_themselves() -> None:
    plain = AzureSettings.of({"AZURE_STORAGE_ENDPOINT": "https://account.blob.core.windows.net"})
    assert (plain.variables(), plain.delta_options(), str(plain)) == ({}, {}, "Azure")
    assert not [key for key in _told_to_java({}) if "endpoint" in key or "hns" in key or "https" in key]


@pytest.mark.parametrize(
    ("variables", "kind", "provider"),
    [
        (["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_SECRET"], "SharedKey", None),
        (["AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"], "OAuth", "ClientCredsTokenProvider"),
        ([], "OAuth", "MsiTokenProvider"),
    ],
)
def test_java_logs_in_at_azure_with_what_the_environment_has(variables, kind, provider) -> None:
    told = _told_to_java(dict.fromkeys(variables, "word"))
    assert told["fs.azure.account.auth.type"] == kind
    assert told.get("fs.azure.account.oauth.provider.type", "").rpartition(".")[2] == (provider or "")
    named = {name for value in told.values() for name in re.findall(r"\$\{env\.(\w+)\}", value)}
    assert named <= set(variables)


@pytest.mark.parametrize("key", ["no Base64!", None])
def test_a_key_that_is_none_and_a_missing_one_are_named_errors(key, monkeypatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:9/account")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY", raising=False)
    if key:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    with pytest.raises(LakeletError, match="STORE_FAILED") as error:
        any_path("abfss://c@account.dfs.core.windows.net/x").exists()
    assert "AZURE_STORAGE_ACCOUNT_KEY" in (error.value.todo or "")
