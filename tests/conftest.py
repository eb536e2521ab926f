"""The one Spark session of the test run, and the marker of the tests that need it."""

from __future__ import annotations

import os
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.azurite import AzureServer, azure_server
from tests.gcs import GoogleServer, google_server
from tests.hdfs import HdfsServer, hdfs_server
from tests.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ["LAKELET_ARCHIVE"] = "off"  # no command of a test leaves a process that makes the class-data archive
os.environ["LAKELET_PROGRESS"] = "off"  # how long a phase takes is the machine's affair


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session that all tests share, started as Lakelet starts it. Tests use their own `tmp_path` and clean up their views.

    LAKELET_TEST_ADAPTIVE=1 (make test-adaptive) turns on adaptive execution, which Lakelet leaves off for small input.
    """
    from lakelet.jvm.local_files import use_quick_local_files
    from lakelet.spark.launch.session import start_session

    warehouse = tmp_path_factory.mktemp("warehouse").as_uri()
    adaptive = {"spark.sql.adaptive.enabled": "true"} if os.environ.get("LAKELET_TEST_ADAPTIVE") else {}
    settings = {"spark.sql.warehouse.dir": warehouse, **adaptive}
    session = start_session(app_name="tests", input_bytes=0, conf=settings)
    use_quick_local_files(session.sparkContext)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def _s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A server that speaks S3's protocol, with an empty bucket; this process's environment points to it."""
    return _with_bucket(_s3, monkeypatch)


@pytest.fixture(scope="session")
def _google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    with google_server(tmp_path_factory.mktemp("google")) as server:
        yield server


@pytest.fixture
def google(_google: GoogleServer, monkeypatch: pytest.MonkeyPatch) -> GoogleServer:
    """As `s3`, a server that speaks the protocols of Google Cloud Storage."""
    return _with_bucket(_google, monkeypatch)


@pytest.fixture(scope="session")
def _azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture
def azure(_azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> AzureServer:
    """As `s3`, a server that speaks the protocol of Azure's Blob Storage."""
    return _with_bucket(_azure, monkeypatch)


@pytest.fixture(scope="session")
def _hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def hdfs(_hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> HdfsServer:
    """As `s3`, a name node and a data node of HDFS, with an empty folder."""
    return _with_bucket(_hdfs, monkeypatch)


Server = TypeVar("Server", S3Server, GoogleServer, AzureServer, HdfsServer)


def _with_bucket(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with an empty bucket of its own, which this process's environment points to."""
    found = replace(server, bucket=f"lake-{uuid.uuid4().hex[:8]}")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    found.make_bucket()
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the session as `spark`, through whichever fixture, and the cases that CI leaves out as `slow`.

    Names must be the same in every process, or pytest-xdist runs nothing: the address of an object in one is refused at once.
    """
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"give the cases of this test ids of their own, they hold an address: {item.nodeid}")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    _mark_cases_that_ci_leaves_out(items)
    _leave_long_ones_to_the_night(items)


def _leave_long_ones_to_the_night(items: list[pytest.Item]) -> None:
    """Mark as `slow` two of three `long` tests by a number of their names, the same ones each time, but for those with a marker `in_ci`."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("in_ci") and zlib.crc32(item.nodeid.encode()) % 3:
            item.add_marker(pytest.mark.slow)


def _mark_cases_that_ci_leaves_out(items: list[pytest.Item]) -> None:
    """Mark as `slow` the cases of a test that its marker `in_ci` does not keep: every nth is kept, or those with the named ids."""
    cases: defaultdict[str, int] = defaultdict(int)
    for item in items:
        kept = item.get_closest_marker("in_ci")
        if kept is None:
            continue
        test = item.nodeid.partition("[")[0]
        case = item.callspec.id if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ""
        if case not in kept.args and (kept.args or cases[test] % kept.kwargs["every"]):
            item.add_marker(pytest.mark.slow)
        cases[test] += 1
