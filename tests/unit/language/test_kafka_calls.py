"""`read_kafka` in SQL text: its arguments under the names of Spark's source. No Spark."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.spark.names.table_functions import evaluated, kafka_options


def test_arguments_get_the_names_that_spark_has_for_them():
    names = [
        "bootstrapservers",
        "SUBSCRIBE",
        "startingOffsets",
        "kafka.security.protocol",
        "maxOffsetsPerTrigger",
        "failondataloss",
        "assign",
    ]
    found = kafka_options(names, ["h:9092", "t", "earliest", "SSL", 10, False, None], None)
    assert found == {
        "kafka.bootstrap.servers": "h:9092",
        "subscribe": "t",
        "startingOffsets": "earliest",
        "kafka.security.protocol": "SSL",
        "maxOffsetsPerTrigger": "10",
        "failOnDataLoss": "false",
    }


@pytest.mark.parametrize(
    ("names", "values", "what"),
    [
        (["subscribe"], ["t"], "needs bootstrapServers"),
        (["bootstrapServers"], ["h"], "needs subscribe"),
        ([None], ["h"], "takes arguments by name"),
    ],
)
def test_a_call_of_a_wrong_shape_is_refused(names, values, what):
    with pytest.raises(LakeletError) as error:
        kafka_options(names, values, None)
    assert error.value.code == "CF_INCORRECT_SQL_PARAMS"
    assert what in error.value.what


def test_plain_literals_are_evaluated_without_a_query():
    def run(query: str) -> None:
        raise AssertionError(query)

    texts = ["'a b'", '"x"', "12", "-3", "TRUE", "map('k', \"v\", 'l' , 'w')", " 'x' "]
    assert evaluated(run)(texts) == ["a b", "x", 12, -3, True, {"k": "v", "l": "w"}, "x"]


@pytest.mark.parametrize(
    "text", ["'a''b'", "'a\\nb'", "1.5", "NULL", "'a' 'b'", "concat('a', 'b')", "map('a')", "map('a', concat('b'))", "12345678901"]
)
def test_what_is_no_plain_literal_is_asked_of_spark(text):
    asked = []

    class Answer:
        def first(self) -> tuple[str]:
            return ("answer",)

    def run(query: str) -> Answer:
        asked.append(query)
        return Answer()

    assert evaluated(run)([text]) == ["answer"]
    assert asked == [f"SELECT {text} AS a0"]
