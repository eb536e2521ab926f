"""Sinks and the flows into them as declared: arguments, what they mean, and what is refused (docs/semantics/sinks.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.redaction import shown_options
from lakelet.language import api, sql
from lakelet.language.model import Definitions, Kind
from lakelet.language.registry import Registry, recording

SERVERS = {"kafka.bootstrap.servers": "host:9092"}


def declared(*calls: Callable[[], Any]) -> tuple[Registry, Definitions]:
    registry = Registry(Namespace("cat", "sch"))
    with recording(registry):
        for call in calls:
            call()
    return registry, registry.definitions()


def refused(call: Callable[[], Any]) -> LakeletError:
    with pytest.raises(LakeletError) as caught:
        declared(call)
    assert caught.value.where is not None
    assert caught.value.where.file.endswith("test_sink_declarations.py")
    return caught.value


def into(target: str, *, kind: str = "append_flow", **arguments: Any) -> Callable[[], Any]:
    def flow() -> None: ...

    flow.__name__ = f"to_{target}_{kind}_{len(arguments)}"
    return lambda: api.DP[kind](target=target, **arguments)(flow)


def test_a_sink_has_its_format_its_options_as_text_and_the_table_that_it_names():
    _, found = declared(
        lambda: api.DLT["create_sink"](name="a", format="delta", options={"tableName": "x.y.z", "mergeSchema": True}),
        lambda: api.DP["create_sink"]("b", "kafka", {**SERVERS, "retries": 3}),
        into("a"),
        into("b"),
    )
    a, b = found.sinks
    assert (str(a.name), a.kind, a.sink.options) == ("cat.sch.a", Kind.SINK, {"tableName": "x.y.z", "mergeSchema": "true"})
    assert (a.sink.is_delta, str(a.sink.table)) == (True, "x.y.z")
    assert (b.sink.is_delta, b.sink.table, b.sink.options["retries"]) == (False, None, "3")
    assert [f.name for f in found.flows_by_target()["cat.sch.a"]] == ["cat.sch.to_a_append_flow_0"]


def test_a_function_becomes_a_sink_with_and_without_a_name_and_can_still_be_called():
    seen = []

    def handler(df: Any, batch_id: int) -> None:
        seen.append((df, batch_id))

    made = []
    _, found = declared(
        lambda: made.append(api.DP["foreach_batch_sink"](handler)),
        lambda: made.append(api.DP["foreach_batch_sink"](name="named")(handler)),
        lambda: made.append(api.DLT["foreach_batch_sink"]("also")(handler)),
    )
    assert [str(d.name) for d in found.sinks] == ["cat.sch.handler", "cat.sch.named", "cat.sch.also"]
    assert all(d.where.line == handler.__code__.co_firstlineno for d in found.sinks)
    for number, function in enumerate(made):
        function("df", number)
    assert seen == [("df", 0), ("df", 1), ("df", 2)]


def test_flows_append_once_or_tell_updates():
    _, found = declared(lambda: api.DP["create_sink"]("s", "console"), into("s"), into("s", once=True), into("s", kind="update_flow"))
    assert [(f.once, f.update, f.default) for f in found.flows] == [(False, False, False), (True, False, False), (False, True, False)]


def test_the_first_argument_of_a_flow_is_its_name_in_dlt_and_its_target_in_pipelines():
    def flow() -> None: ...

    _, found = declared(
        lambda: api.DP["create_sink"]("s", "console"),
        lambda: api.DLT["append_flow"]("a", "s")(flow),
        lambda: api.DP["append_flow"]("s", "b")(flow),
        lambda: api.DP["append_flow"]("s")(flow),
        lambda: api.DP["update_flow"]("s", "c")(flow),
    )
    assert [(f.name, str(f.target)) for f in found.flows] == [(f"cat.sch.{name}", "cat.sch.s") for name in ("a", "b", "flow", "c")]
    with pytest.raises(TypeError, match=r"^append_flow\(\) got an unexpected keyword argument"):
        api.DP["append_flow"](target="s", onec=True)


def test_sql_flows_write_to_sinks():
    def script() -> None:
        sql.declare([sql.Cell("CREATE FLOW f AS INSERT INTO s BY NAME SELECT * FROM STREAM a", 1)], FILE, configuration={}, session=None)

    from pathlib import Path

    FILE = Path("flow.sql")
    registry, found = declared(lambda: api.DP["create_sink"]("s", "console"), script)
    assert (registry.errors, [str(f.target) for f in found.flows]) == ([], ["cat.sch.s"])


def test_a_checkpoint_of_the_users_has_no_effect_which_a_notice_says():
    registry, found = declared(lambda: api.DP["create_sink"]("s", "json", {"path": "/x", "checkpointLocation": "/y"}))
    assert [dict(dataset.sink.options) for dataset in found.sinks] == [{"path": "/x"}]
    assert any("checkpointLocation" in notice.text for notice in registry.notices)


@pytest.mark.parametrize(
    "arguments",
    [
        ("s", "delta"), ("s", "delta", {}), ("s", "delta", {"path": "/x", "tableName": "y"}), ("s", "delta", {"tableName": "a.b.c.d"}),
        ("s", "delta", {"path": None}), ("s", "delta", [("path", "/x")]), ("s", "delta", {1: "/x"}), ("s", ""), ("s", None), (None, "noop"),
        ("", "noop"), ("s", "kafka", {"topic": "t"}), ("s", "delta", {"path": "/x", "txnAppId": "mine"}),
    ],
)  # fmt: skip
def test_wrong_arguments_of_a_sink_are_refused_at_the_line_of_the_call(arguments):
    assert refused(lambda: api.DP["create_sink"](*arguments)).code == "ARGUMENT_INVALID"


@pytest.mark.parametrize(
    "call",
    [
        lambda: api.DP["foreach_batch_sink"](lambda df, batch_id: None),
        lambda: api.DP["foreach_batch_sink"](name="s")(lambda df: None),
        lambda: api.DP["foreach_batch_sink"](name=5),
        lambda: api.DP["foreach_batch_sink"](name="s")("no function"),
        lambda: api.DP["update_flow"]()(lambda: None),
        lambda: api.DP["append_flow"](target="s", once="yes"),
        lambda: api.DP["expect"]("a", "b > 0")(api.DP["foreach_batch_sink"](name="s")(lambda df, batch_id: None)),
        lambda: api.DP["foreach_batch_sink"](name="s")(api.DP["expect"]("a", "b > 0")(lambda df, batch_id: None)),
        lambda: api.DP["expect"]("a", "b > 0")(api.DP["append_flow"](target="s", name="f")(lambda: None)),
        lambda: api.DP["append_flow"](target="s", name="f")(api.DP["expect"]("a", "b > 0")(lambda: None)),
    ],
)
def test_wrong_functions_and_expectations_on_sinks_and_flows_are_refused(call):
    assert refused(call).code == "ARGUMENT_INVALID"


def test_options_of_databricks_are_told_to_have_no_effect():
    registry, _ = declared(lambda: api.DP["create_sink"]("s", "kafka", {**SERVERS, "databricks.serviceCredential": "c"}), into("s"))
    assert [n.text.split(" of ")[0] for n in registry.notices] == ["the option databricks.serviceCredential"]


def test_a_sink_without_a_flow_is_told():
    registry, _ = declared(lambda: api.DP["create_sink"]("s", "noop"))
    assert [n.text for n in registry.notices] == ["no flow writes to the sink cat.sch.s"]


def test_names_are_unique_across_datasets_and_sinks():
    registry, _ = declared(lambda: api.DP["create_sink"]("s", "noop"), lambda: api.DP["create_streaming_table"]("S"))
    assert [e.code for e in registry.errors] == ["DUPLICATE_DATASET"]


def test_all_definitions_of_a_name_are_one_error_that_lists_their_places():
    def other():
        api.DP["create_streaming_table"]("t")

    registry, _ = declared(*[lambda: api.DP["create_streaming_table"]("s")] * 2, other, lambda: api.DP["create_sink"]("S", "noop"), other)
    s, t = (error for error in registry.errors if error.code == "DUPLICATE_DATASET")
    assert s.what.startswith("three definitions")
    assert s.why.count("test_sink_declarations.py, line") == 3
    assert t.what.startswith("two definitions")
    assert t.why.count("test_sink_declarations.py, line") == 2


def test_what_a_target_cannot_take_is_refused():
    registry, _ = declared(
        lambda: api.DP["create_sink"]("lake", "delta", {"path": "/x"}),
        lambda: api.DP["create_streaming_table"]("table"),
        into("lake", kind="update_flow"),
        into("table", kind="update_flow"),
        lambda: api.DP["create_sink"]("files", "csv", {"path": "/x"}),
        into("files", kind="update_flow"),
        into("lakes"),
        lambda: api.DP["create_auto_cdc_flow"]("lake", "table", ["id"], "at"),
    )
    assert [(e.code, e.nearest) for e in registry.errors] == [
        ("TARGET_KIND", ()),
        ("TARGET_KIND", ()),
        ("TARGET_KIND", ()),
        ("UNKNOWN_TARGET", ("cat.sch.lake", "cat.sch.files")),
        ("TARGET_KIND", ()),
    ]


def test_secrets_among_options_are_not_shown():
    options = {
        "kafka.sasl.jaas.config": "x",
        "kafka.ssl.truststore.password": "y",
        "topic": "t",
        "fs.azure.account.key": "k",
        "accessKey": "z",
    }
    assert {key for key, value in shown_options(options).items() if value != "[REDACTED]"} == {"topic"}
