"""How many partitions a session and its queries get: one rule for this machine and for clusters (decision 102)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from lakelet.base.masters import is_local, is_on_this_machine
from lakelet.spark.partitions import INTERPRETED_BYTES, MADE_BY_LAKELET, ONE_TASK_BYTES, SHUFFLE, query_sizes, session_sizes, sized

SNAPSHOT, ADAPTIVE = "spark.databricks.delta.snapshotPartitions", "spark.sql.adaptive.enabled"
GIGABYTE = 1024**3


class Conf(dict[str, str]):
    """The settings of a session, as pyspark gives them."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        self.pop(name, None)


class Session:
    def __init__(self, **settings: str) -> None:
        self.conf = Conf(settings)


def session(cores: int, **more: str) -> Any:
    return Session(**session_sizes(cores, 0), **more)


BY_CORES = [(1, "1", "1"), (2, "2", "2"), (10, "10", "10"), (100, "100", "50"), (1000, "200", "50"), (None, "200", "50")]
LOCAL = ["local", "local[2]", "local[*, 3]"]
ELSEWHERE = ["spark://head:7077", "k8s://https://head", "yarn"]


@pytest.mark.parametrize(("cores", "shuffle", "snapshot"), BY_CORES)
def test_partitions_follow_the_cores_up_to_the_defaults_of_spark_and_delta(cores: int | None, shuffle: str, snapshot: str) -> None:
    sizes = session_sizes(cores, None)
    assert (sizes[SHUFFLE], sizes[SNAPSHOT]) == (shuffle, snapshot)
    assert ADAPTIVE not in sizes


def test_an_update_of_little_input_reads_logs_in_one_partition_and_plans_once() -> None:
    little, much = session_sizes(100, INTERPRETED_BYTES - 1), session_sizes(100, INTERPRETED_BYTES)
    assert (little[SHUFFLE], little[SNAPSHOT], little[ADAPTIVE]) == ("100", "1", "false")
    assert (much[SHUFFLE], much[SNAPSHOT], ADAPTIVE in much) == ("100", "50", False)


def test_what_the_user_has_set_is_left_out() -> None:
    sizes = session_sizes(2, 0, {SHUFFLE, SNAPSHOT})
    assert not {SHUFFLE, SNAPSHOT, MADE_BY_LAKELET} & sizes.keys()
    assert sizes[ADAPTIVE] == "false"


@pytest.mark.parametrize(
    ("size", "partitions"),
    [(ONE_TASK_BYTES, "1"), (ONE_TASK_BYTES + 1, None), (GIGABYTE, None), (GIGABYTE + GIGABYTE // 2, "12"), (200 * GIGABYTE, "1600")],
)
def test_a_query_gets_one_task_for_little_and_a_partition_for_each_split_of_much(size: int, partitions: str | None) -> None:
    assert query_sizes(session(10), size).get(SHUFFLE) == partitions


@pytest.mark.parametrize("size", [1, 200 * GIGABYTE])
def test_a_number_that_somebody_else_has_set_stays(size: int) -> None:
    changed = session(10)
    changed.conf.set(SHUFFLE, "7")
    assert SHUFFLE not in query_sizes(changed, size)
    foreign: Any = Session(**{SHUFFLE: "10"})
    assert query_sizes(foreign, size) == {}


def test_a_block_has_its_sizes_and_the_session_its_own_afterwards() -> None:
    spark = session(4)
    before = dict(spark.conf)
    with sized(spark, 1):
        assert spark.conf[SHUFFLE] == "1"
    with sized(spark, 1, little=False):
        assert spark.conf == before
    with suppress(ValueError), sized(spark, GIGABYTE, little=False):
        assert spark.conf[SHUFFLE] == "8"
        raise ValueError
    assert spark.conf == before


def test_the_url_of_a_master_says_where_tasks_run() -> None:
    assert all(is_local(master) and is_on_this_machine(master) for master in (None, *LOCAL))
    assert not any(is_local(master) or is_on_this_machine(master) for master in ELSEWHERE)
    assert not is_local("local-cluster[2,1,1024]")
    assert is_on_this_machine("local-cluster[2,1,1024]")
