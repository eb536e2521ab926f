"""What `lakelet run` shows while an update runs and when it ends."""

from __future__ import annotations

import io
import json
import queue
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.base.phases import Phase, report, report_phase
from lakelet.base.text import bytes_text
from lakelet.cli.console import JsonLines, LiveTable, PlainLines, shown_phases, watcher
from lakelet.cli.lines import Line, error_lines, write_lines
from lakelet.cli.summary import cells, program, summary
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.fold import LiveUpdate
from lakelet.storage.eventlog.states import UpdateState
from lakelet.storage.eventlog.summaries import UpdateSummary

START = datetime(2026, 3, 1, 8, 0, tzinfo=timezone.utc)
UPDATE = "3f2a91c0-0000-4000-8000-000000000000"


class Story:
    """Events of one update, one tenth of a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, event_type: str, body: dict, *, dataset: str | None = None, message: str = "", pause: float = 0.1, **more) -> Story:
        full = f"main.shop.{dataset}" if dataset else None
        flow = more.pop("flow", full)
        sink = full if more.pop("sink", False) else None
        origin = Origin("p", "shop", UPDATE, dataset_name=None if sink else full, flow_name=flow, sink_name=sink)
        moment = (self.events[-1].timestamp if self.events else START) + timedelta(seconds=pause if self.events else 0)
        number = len(self.events) + 1
        identity = more.pop("id", f"e{number}")
        self.events.append(Event(event_type, message, origin, {event_type: body}, timestamp=moment, id=identity, sequence=number, **more))
        return self

    def state(self, state: str, **more) -> Story:
        return self.add("update_progress", {"state": state}, **more)

    def flow(self, dataset: str, *statuses: str, **more) -> Story:
        for status in statuses:
            more.setdefault("message", f"Flow '{dataset}' is {status}.")
            self.add("flow_progress", {"status": status}, dataset=dataset, **more)
        return self

    def batch(self, dataset: str, rows: int, dropped: int = 0, rules: dict[str, tuple[int, int]] | None = None, **more) -> Story:
        found = [
            {"name": name, "dataset": f"main.shop.{dataset}", "passed_records": passed, "failed_records": failed}
            for name, (passed, failed) in (rules or {}).items()
        ]
        quality = {"dropped_records": dropped, "expectations": found}
        body = {"status": "RUNNING", "metrics": {"num_output_rows": rows}, "data_quality": quality}
        return self.add("flow_progress", body, dataset=dataset, **more)

    def played_to(self, listener) -> None:
        for event in self.events:
            listener(event)

    def update(self) -> UpdateSummary:
        update = LiveUpdate()
        self.played_to(lambda event: update.feed(event.as_json()))
        return update.value()


def good_story() -> Story:
    story = Story().add("create_update", {"cause": "USER_ACTION"}).state("INITIALIZING").state("RUNNING", pause=1.5)
    story.flow("orders_raw", "QUEUED", "STARTING").flow("orders", "QUEUED").flow("names", "QUEUED").flow("daily", "QUEUED")
    story.batch("orders_raw", 60_000, pause=2).batch("orders_raw", 1_234)
    body = {"flow_name": "main.shop.orders_raw", "source": "landing", "records": 9, "rescued": 7, "corrupt": 2}
    story.add(
        "source_records",
        {**body, "first_file": "file:/data/landing/b.json", "first_line": 17},
        dataset="orders_raw",
        level="WARN",
        message="9 odd records",
    )
    change = {
        "flow_name": "main.shop.orders_raw",
        "source": "landing",
        "added": [{"name": "trace", "type": "string"}],
        "first_file": "landing/c.json",
    }
    story.add("schema_change", change, dataset="orders_raw", message="orders_raw: new column trace, first seen in landing/c.json")
    story.flow("orders_raw", "COMPLETED").flow("orders", "STARTING")
    story.batch("orders", 61_000, 230, {"has_id": (61_004, 230), "recent": (60_000, 1_234), "priced": (61_234, 0)}, pause=1)
    story.add(
        "late_records", {"flow_name": "main.shop.orders", "dropped_by_watermark": 4}, dataset="orders", level="WARN", message="4 rows late"
    )
    story.flow("orders", "COMPLETED").flow("names", "IDLE", message="Flow 'names' is IDLE: its query and its inputs are unchanged.")
    story.flow("daily", "STARTING").batch("daily", 31, pause=0.7).flow("daily", "COMPLETED")
    return story.state("COMPLETED")


def failed_story() -> Story:
    story = Story().add("create_update", {}).state("RUNNING")
    story.flow("raw", "STARTING").batch("raw", 10).flow("raw", "COMPLETED")
    error = LakeletError(
        "EXPECTATION_VIOLATION",
        "1 row breaks has_id",
        dataset="main.shop.orders",
        where=Location("pipelines/shop.py", 12),
        why="{'id': None}",
        todo="Correct the data, or use expect_or_drop.",
    )
    story.flow("orders", "STARTING").flow("orders", "FAILED", level="ERROR", error=error)
    story.flow("daily", "SKIPPED", level="WARN", message="Flow 'daily' is SKIPPED: orders failed.")
    story.add("hook_progress", {"name": "h", "status": "FAILED"}, level="WARN", message="Hook 'h' failed.")
    return story.state("FAILED")


def many_story(datasets: int = 300) -> Story:
    story = Story().state("RUNNING")
    for number in range(datasets):
        story.flow(f"type_{number:03}", "QUEUED", pause=0)
    for number in range(datasets):
        if number % 10 == 0:
            story.flow(f"type_{number:03}", "STARTING").batch(f"type_{number:03}", number, rules={"r": (number, number)}).flow(
                f"type_{number:03}", "COMPLETED"
            )
        else:
            story.flow(f"type_{number:03}", "IDLE", pause=0)
    return story.state("COMPLETED")


def text_of(lines: list[Line]) -> str:
    return "\n".join(line.text for line in lines)


def plain(story: Story) -> str:
    stream = io.StringIO()
    shown = PlainLines(stream)
    story.played_to(shown)
    shown.close()
    return stream.getvalue()


def test_plain_lines_of_a_good_update(golden):
    golden("run_good_lines.txt", plain(good_story()))


def test_plain_lines_of_a_failed_update(golden):
    golden("run_failed_lines.txt", plain(failed_story()))


def test_a_notice_about_a_line_of_several_datasets_is_told_once():
    story = Story()
    for dataset in ("a", "b"):
        story.add("notice", {"text": "no effect", "dataset": dataset}, level="WARN", message="p.py, line 3: no effect")
    assert plain(story).count("line 3") == 1
    assert [warning.text for warning in story.update().warnings] == ["p.py, line 3: no effect"]


def test_plain_lines_leave_idle_datasets_out():
    assert len(plain(many_story()).splitlines()) == 31


def test_summary_of_a_good_update(golden):
    golden(
        "run_good_summary.txt",
        text_of(
            summary(good_story().update(), UpdateState.COMPLETED, namespace=Namespace("main", "shop"), storage="my store", elapsed=12.34)
        ),
    )


def test_summary_of_a_failed_update_tells_each_error_once(golden):
    update = failed_story().update()
    error = next(event.error for event in failed_story().events if event.error)
    other = LakeletError("FLOW_FAILED", "the disk is full", dataset="main.shop.other")
    golden("run_failed_summary.txt", text_of(summary(update, UpdateState.FAILED, [error, other])))


def test_summary_of_three_hundred_datasets_stays_short(golden):
    golden("run_many_summary.txt", text_of(summary(many_story().update(), UpdateState.COMPLETED)))


def test_summary_when_nothing_was_new_tells_why_spark_had_to_be_started(golden):
    story = Story().state("RUNNING").flow("a", "QUEUED", "IDLE").state("COMPLETED")
    doubt = f"{Path.cwd()}/pipelines/a.py:3 imports requests"
    golden("run_idle_with_spark_summary.txt", text_of(summary(story.update(), UpdateState.COMPLETED, needs_spark=doubt)))


def test_summary_when_nothing_was_new(golden):
    story = Story().state("RUNNING").flow("a", "QUEUED", "IDLE").flow("b", "QUEUED", "EXCLUDED").state("COMPLETED")
    golden("run_idle_summary.txt", text_of(summary(story.update(), UpdateState.COMPLETED)))


def test_records_that_were_left_out_are_not_said_to_be_kept():
    story = Story().add("create_update", {"cause": "USER_ACTION"}).state("RUNNING").flow("orders_raw", "STARTING")
    body = {"flow_name": "main.shop.orders_raw", "source": "landing", "records": 9, "rescued": 0, "corrupt": 3, "left_out": 3}
    story.add("source_records", {**body, "first_file": "file:/data/b.json", "first_line": 17}, dataset="orders_raw", level="WARN")
    text = text_of(summary(story.flow("orders_raw", "COMPLETED").update(), UpdateState.COMPLETED, namespace=Namespace("main", "shop")))
    assert "orders_raw: left out 3 broken lines or files, as the options of its source say (first: /data/b.json, line 17)" in text
    assert "kept" not in text


def test_a_number_that_counts_records_is_not_called_a_line():
    body = {"flow_name": "f", "source": "landing", "rescued": 1, "first_file": "/data/b.xml", "first_line": 2, "unit": "record"}
    story = Story().flow("f", "STARTING").add("source_records", {**body, "corrupt": 3}, dataset="f", level="WARN")
    told = "kept 3 broken records and 1 row with rescued values (first: /data/b.xml, record 2)"
    assert told in text_of(summary(story.flow("f", "COMPLETED").update(), UpdateState.COMPLETED))


def test_unread_text_and_bytes_of_another_encoding_are_said_with_place_and_reason():
    story = Story().add("create_update", {"cause": "USER_ACTION"}).state("RUNNING").flow("orders_raw", "STARTING")
    place = {"flow_name": "main.shop.orders_raw", "source": "landing", "records": 9, "first_file": "file:/data/b.json", "first_line": 17}
    story.add("source_records", {**place, "passed_over": 2}, dataset="orders_raw", level="WARN")
    text = text_of(summary(story.flow("orders_raw", "COMPLETED").update(), UpdateState.COMPLETED, namespace=Namespace("main", "shop")))
    assert "orders_raw: read only the first JSON value of 2 lines or documents that go on after it (first: /data/b.json, line 17)" in text
    reason = "file:/data/b.json, line 17, column name: the byte 0xE9 is not UTF-8"
    story.add("source_records", {**place, "rescued": 1, "undecodable": 1, "reason": reason}, dataset="orders_raw", level="WARN")
    text = text_of(summary(story.update(), UpdateState.COMPLETED, namespace=Namespace("main", "shop")))
    assert f"orders_raw: 1 record with bytes that are not of the encoding: {reason}" in text


def test_a_continuous_update_whose_flows_are_idle_at_its_end_does_not_say_that_nothing_was_new():
    story = Story().state("RUNNING").flow("a", "RUNNING").batch("a", 3).flow("a", "COMPLETED", "IDLE").state("CANCELED")
    text = text_of(summary(story.update(), UpdateState.CANCELED))
    assert "1 idle; 3 rows written" in text
    assert "Nothing new" not in text


def layered_story(*, daily: str = "COMPLETED") -> Story:
    """raw → orders → daily, and names, which has nothing new; daily is gold by its place, names by its folder."""
    story = Story().state("RUNNING")
    inputs = {"raw": [], "orders": ["main.shop.raw"], "daily": ["main.shop.orders"], "names": []}
    for name, read in inputs.items():
        rules = [
            {"name": "has_id", "constraint": "id IS NOT NULL", "action": "DROP"},
            {"name": "new", "constraint": "x", "action": "ALLOW"},
        ]
        body = {"dataset_type": "STREAMING_TABLE", "expectations": rules if name == "orders" else []}
        file = {"source_code": {"file": "pipelines/gold/names.py" if name == "names" else "pipelines/p.py", "line": 1}}
        story.add("dataset_definition", {**body, **file}, dataset=name)
        story.add("flow_definition", {"output_dataset": f"main.shop.{name}", "input_datasets": read}, dataset=name)
    story.flow("names", "IDLE").flow("daily", "STARTING").batch("daily", 3).flow("daily", daily)
    story.flow("raw", "STARTING").batch("raw", 9).flow("raw", "COMPLETED")
    story.flow("orders", "STARTING").batch("orders", 7, 2, {"has_id": (7, 2), "new": (8, 1)}).flow("orders", "COMPLETED")
    return story.state("COMPLETED")


def test_summary_is_in_layer_order_shows_gold_always_and_tells_dropped_rows_apart(golden):
    golden("run_layers_summary.txt", text_of(summary(layered_story().update(), UpdateState.COMPLETED)))


def test_rows_that_a_rule_of_a_view_drops_are_dropped_rows():
    rule = {"dataset": "main.shop.seen", "name": "has_id", "constraint": "id IS NOT NULL", "action": "DROP"}
    counted = [{"name": "has_id", "dataset": "main.shop.seen", "passed_records": 5, "failed_records": 2}]
    story = Story().add("dataset_definition", {"dataset_type": "STREAMING_TABLE", "expectations": []}, dataset="a")
    story.add("flow_definition", {"output_dataset": "main.shop.a", "view_expectations": [rule]}, dataset="a")
    body = {"status": "COMPLETED", "metrics": {"num_output_rows": 5}, "data_quality": {"dropped_records": 2, "expectations": counted}}
    story.flow("a", "STARTING").add("flow_progress", body, dataset="a").state("COMPLETED")
    text = text_of(summary(story.update(), UpdateState.COMPLETED))
    assert "Dropped rows\n  seen  has_id  2  of 7 rows" in text
    assert "Violations" not in text


def test_rows_of_a_batch_that_a_fail_rule_stopped_are_neither_dropped_nor_kept():
    rules = [{"name": "low", "passed_records": 3, "failed_records": 1}, {"name": "known", "passed_records": 2, "failed_records": 2}]
    body = {"status": "FAILED", "data_quality": {"scope": "FAILED_BATCH", "dropped_records": 0, "expectations": rules}}
    declared = [{"name": "low", "action": "FAIL"}, {"name": "known", "action": "DROP"}]
    story = Story().state("RUNNING").add("dataset_definition", {"expectations": declared}, dataset="orders").flow("orders", "STARTING")
    text = text_of(summary(story.add("flow_progress", body, dataset="orders", level="ERROR").update(), UpdateState.FAILED))
    assert "Dropped rows" not in text
    shown = [" ".join(line.split()) for line in text.splitlines()]
    at = shown.index("Violations in failed batches")
    assert shown[at + 1 : at + 3] == ["orders known 2 of 4 rows", "orders low 1 of 4 rows"]


def test_a_summary_fits_the_terminal():
    story = Story().state("RUNNING").flow("a_very_long_name_of_a_dataset_that_goes_on_and_on_beyond_the_screen_of_a_terminal", "STARTING")
    lines = summary(story.update(), UpdateState.COMPLETED, width=80)
    assert max(len(line.text) for line in lines[:2]) <= 80
    assert "a_very_long" in lines[1].text
    assert "…" in lines[1].text


def test_bytes_are_told_in_the_unit_that_fits():
    assert [bytes_text(n) for n in (0, 812, 1_250, 999_900, 38_100_000, 2**62)] == [
        "0 B", "812 B", "1.2 kB", "1.0 MB", "38.1 MB", "4611686.0 TB",
    ]  # fmt: skip


def test_a_measurement_that_arrives_twice_counts_once():
    update = Story().batch("a", 5, id="same").batch("a", 5, id="same").update()
    assert update.total("rows") == 5


def test_of_several_flows_the_worst_state_is_shown():
    story = (
        Story().flow("a", "COMPLETED", flow="f").flow("a", "FAILED", flow="g").flow("b", "COMPLETED", flow="h").flow("b", "IDLE", flow="i")
    )
    assert [d.state for d in story.update().all_datasets.values()] == ["FAILED", "COMPLETED"]


def test_the_line_of_a_flow_counts_its_own_rows_and_time():
    north, south = "main.shop.north", "main.shop.south"
    story = Story().state("RUNNING").flow("sales", "RUNNING", flow=north).flow("sales", "RUNNING", flow=south, pause=1.0)
    story.batch("sales", 2, flow=north).batch("sales", 1, dropped=3, flow=south)
    story.flow("sales", "COMPLETED", flow=north).flow("sales", "COMPLETED", flow=south)

    shown = plain(story)

    assert "(flow main.shop.north)  2 rows, 1.3 s" in shown
    assert "(flow main.shop.south)  1 row, 3 dropped, 0.4 s" in shown
    assert (story.update().all_datasets["main.shop.sales"].total("rows"), story.update().total("dropped")) == (3, 3)


def test_rows_that_nobody_counts_are_not_told_as_none():
    story = Story().state("RUNNING")
    for sink in ("handled", "sent"):
        story.flow(sink, "RUNNING", sink=True)
    story.batch("sent", 3, sink=True).flow("handled", "COMPLETED", sink=True).flow("sent", "COMPLETED", sink=True)

    shown = plain(story)

    assert "COMPLETED  main.shop.handled  0.3 s" in shown
    assert "COMPLETED  main.shop.sent  3 rows, 0.3 s" in shown
    assert [cells(d)[1] for d in story.update().all_datasets.values()] == ["-", "3"]


def test_json_lines_are_the_events():
    stream = io.StringIO()
    story = failed_story()
    story.played_to(JsonLines(stream))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["sequence"] for line in lines] == list(range(1, len(story.events) + 1))
    failed = next(line for line in lines if line["error"])
    assert failed["details"] == {"flow_progress": {"status": "FAILED"}}
    assert failed["error"]["exceptions"][0]["class_name"] == "EXPECTATION_VIOLATION"


def test_json_goes_to_stdout_and_the_update_is_still_counted():
    out, err = io.StringIO(), io.StringIO()
    shown, update, listeners = watcher(as_json=True, stdout=out, stderr=err)
    story = good_story()
    for event in story.events:
        for listener in listeners:
            listener(event)
    shown.close()
    assert (len(out.getvalue().splitlines()), err.getvalue(), update.value().total("rows")) == (len(story.events), "", 122_265)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(story: Story, monkeypatch, lines: int = 24) -> str:
    from rich.console import Console

    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setenv("COLUMNS", "100")
    live = LiveTable(Terminal(), now=lambda: story.events[-1].timestamp + timedelta(seconds=1))
    story.played_to(live)
    live.close()
    picture = Console(file=io.StringIO(), width=100, color_system=None)
    picture.print(live.render())
    return "\n".join(line.rstrip() for line in picture.file.getvalue().splitlines())  # type: ignore[attr-defined]


def test_live_table(golden, monkeypatch):
    story = good_story()
    story.events = [e for e in story.events if e.sequence <= 18]
    golden("run_live.txt", drawn(story, monkeypatch))


def test_live_table_before_the_first_event():
    moments = iter([START, START + timedelta(seconds=3), *[START + timedelta(seconds=4)] * 100])
    live = LiveTable(Terminal(), now=lambda: next(moments))
    assert "Starting Spark and analysing the pipeline" in str(live.render())
    live.close()


def test_live_table_of_three_hundred_datasets_fits_the_screen(golden, monkeypatch):
    story = many_story()
    story.events = story.events[:-30]
    picture = drawn(story, monkeypatch)
    assert len(picture.splitlines()) <= 24
    golden("run_live_many.txt", picture)


def test_colour_only_on_a_terminal():
    lines = [Line("bad news", "bad"), Line("plain")]
    terminal, file = Terminal(), io.StringIO()
    write_lines(lines, terminal)
    write_lines(lines, file)
    assert terminal.getvalue() == "\x1b[31mbad news\x1b[0m\nplain\n"
    assert file.getvalue() == "bad news\nplain\n"


def test_the_next_step_is_spelled_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [".venv/bin/lakelet", "run"])
    assert program() == ".venv/bin/lakelet"
    (tmp_path / "lakelet").write_text("#!/bin/sh\n")
    (tmp_path / "lakelet").chmod(0o755)
    assert program() == "lakelet"


def a_retry() -> tuple[list[Event], LakeletError]:
    """A flow that fails twice, whose update fails and is followed by one that succeeds."""
    lost = LakeletError("FLOW_FAILED", "the line was cut", dataset="main.shop.orders")
    story = Story().state("RUNNING").flow("orders", "STARTING")
    story.flow(
        "orders", "FAILED", level="WARN", error=lost, message="Flow 'orders' has FAILED: the line was cut; retry 1 of 1 follows in 5 s."
    )
    story.flow("orders", "FAILED", level="ERROR", error=lost, message="Flow 'orders' has FAILED: the line was cut")
    story.state("FAILED", level="WARN", message="Update 3f2a91 is FAILED; retry 1 of 5 follows in 5 s.")
    again = Story().state("RUNNING").flow("orders", "STARTING", "COMPLETED").state("COMPLETED").events
    other = [replace(e, origin=replace(e.origin, update_id="99999999"), id=f"again{e.id}") for e in again]
    return [*story.events, *other], lost


def failures(shown: PlainLines) -> list[str]:
    return [run.failure.text for run in shown.update.value().runs if run.failure]


def test_attempts_are_told_as_they_fail_and_the_summary_is_of_the_last_one() -> None:
    events, lost = a_retry()
    stream = io.StringIO()
    shown = PlainLines(stream)
    for event in events[:4]:
        shown(event)
    assert failures(shown) == [str(lost)]
    for event in events[4:]:
        shown(event)
    text = stream.getvalue()
    assert "retry 1 of 1 follows in 5 s." in text
    assert "Update 3f2a91 is FAILED; retry 1 of 5 follows in 5 s." in text
    assert (shown.update.value().id, shown.update.value().state, failures(shown)) == ("99999999", "COMPLETED", [])
    assert shown.update.value().states == {"COMPLETED": 1}


def test_the_live_table_keeps_what_failed_on_the_screen() -> None:
    stream = io.StringIO()
    live = LiveTable(stream)
    for event in a_retry()[0]:
        live(event)
    live.close()
    assert "Update 3f2a91 is FAILED; retry 1 of 5 follows in 5 s." in stream.getvalue()


def test_states_that_only_a_newer_event_log_has_are_work_going_on() -> None:
    story = Story().state("RUNNING").flow("orders", "STARTING", "HIBERNATING").state("DREAMING")
    stream = io.StringIO()
    shown = PlainLines(stream)
    story.played_to(shown)
    update = shown.update.value()
    assert (str(update.state), str(update.all_datasets["main.shop.orders"].state)) == ("RUNNING", "RUNNING")
    story.flow("orders", "COMPLETED").played_to(PlainLines(stream))
    assert "COMPLETED" in stream.getvalue()


def test_after_a_failure_the_next_command_refreshes_what_did_not_finish_with_the_sources_of_the_run():
    text = text_of(summary(failed_story().update(), UpdateState.FAILED, sources=["my pipelines/"], storage="here"))
    assert "  ·  lakelet run 'my pipelines/' --refresh-failed --storage here  ·  " in text.splitlines()[-1]


def test_an_error_breaks_between_words_where_the_terminal_is_narrow(monkeypatch):
    monkeypatch.setattr("lakelet.cli.lines.columns_of", lambda stream: 40)
    error = LakeletError(
        "UNKNOWN_TABLE", "the storage holds no table with_a_rather_long_name", todo="List all names: lakelet show, or look for them"
    )
    assert [line.text for line in error_lines(error, io.StringIO())] == [
        "[UNKNOWN_TABLE] the storage holds no",
        "table with_a_rather_long_name",
        "  List all names: lakelet show, or look",
        "  for them",
    ]


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are written because time passes."""
    monkeypatch.delenv("LAKELET_PROGRESS")


class Watched(io.StringIO):
    """A file that lets a test wait for what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[str] = queue.Queue()

    def write(self, text: str) -> int:
        self.lines.put(text)
        return super().write(text)


@pytest.mark.usefixtures("progress")
def test_in_a_file_each_phase_that_takes_time_has_a_line_and_a_download_has_one_at_once() -> None:
    stream = Watched()
    with shown_phases(stream, "Starting"):
        report_phase(Phase("Fetching a.jar", 100_000, in_bytes=True))
        assert stream.lines.get(timeout=0) == "Fetching a.jar 0.1 MB\n"
        report("Starting Spark")
        assert stream.lines.get(timeout=60) == "Starting Spark\n"
        report("Analysing", 3, 25)
        assert stream.lines.get(timeout=60) == "Analysing 3/25\n"
        with shown_phases(stream, "Reading"):
            report("Planning")
        assert stream.lines.get(timeout=60) == "Planning\n"
    report("Ended")
    assert stream.lines.empty()


@pytest.mark.usefixtures("progress")
def test_in_a_file_an_update_names_the_datasets_at_work_when_nothing_else_was_written_for_a_while() -> None:
    stream = Watched()
    shown = PlainLines(stream)
    Story().state("RUNNING").flow("orders", "STARTING").flow("items", "RUNNING").flow("later", "QUEUED").played_to(shown)
    assert stream.lines.get(timeout=0) == "    0.0s  update 3f2a91 RUNNING\n"
    assert stream.lines.get(timeout=60).endswith("s  RUNNING    main.shop.orders, main.shop.items\n")
    shown.close()


@pytest.mark.usefixtures("progress")
def test_an_update_in_a_file_says_its_state_while_no_dataset_is_at_work_and_nothing_once_it_has_ended() -> None:
    stream, ended = Watched(), Watched()
    waiting, done = PlainLines(stream), PlainLines(ended)
    Story().state("RUNNING").state("COMPLETED").played_to(done)
    Story().state("INITIALIZING").played_to(waiting)
    assert stream.lines.get(timeout=60).endswith("s  update 3f2a91 INITIALIZING\n")
    assert stream.lines.get(timeout=60).endswith("s  update 3f2a91 INITIALIZING\n")
    assert ended.getvalue() == "    0.0s  update 3f2a91 RUNNING\n"
    waiting.close()
    done.close()
