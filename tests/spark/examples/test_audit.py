"""examples/audit as its README runs it, on CloudTrail's own files, and under a reader; the tables against an oracle of another hand."""

from __future__ import annotations

import gzip
import json
import os
import re
import runpy
import shlex
import signal
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import TableNotFoundError

from lakelet.cli.main import main
from tests.audit_example import check, copied, sent, table
from tests.oracles import audit as oracle
from tests.paths import ROOT

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAMPLE = ROOT.parent / "shared" / "data" / "cloudtrail" / "cloudtrail.tar.gz"

pytestmark = [pytest.mark.long, pytest.mark.spark]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example in a folder of its own, which is the current one."""
    folder = copied(tmp_path / "audit")
    monkeypatch.chdir(folder)
    return folder


def files_of(project: Path, name: str) -> dict[str, set[str]]:
    """Data files of a table by partition."""
    found: dict[str, set[str]] = {}
    for path in table(project, name).file_uris():
        found.setdefault(Path(path).parent.name, set()).add(path)
    return found


def normal(text: str) -> str:
    """JSON without differences that mean nothing; other text as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


def write_odd_files(landing: Path) -> dict[Path, list[str]]:
    """Write files that are not one log each, and whose records are known already; the texts that are to be kept of each."""
    first, second = [json.dumps(r) for r in oracle.records_of(min(landing.rglob("*.json.gz"))) if oracle.event_of(r) is not None][:2]
    texts = {
        "two-logs.json.gz": (f'{{"Records":[{first}]}}\n{{ "Records" : [{second}]}}\n', [first, second]),
        "cut.json.gz": (f'{{"Records":[{first},{second[:40]}', [f'{{"Records":[{first},{second[:40]}']),
        "list.json.gz": (f'[{{"Records":[{first}]}}]', [f'[{{"Records":[{first}]}}]']),
    }
    for name, (text, _) in texts.items():
        (landing / name).write_bytes(gzip.compress(text.encode()))
    return {landing / name: records for name, (_, records) in texts.items()}


def test_the_readme_of_the_audit_example_gives_the_tables_of_the_oracle(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    (commands,) = SH.findall((project / "README.md").read_text(encoding="utf-8"))
    export = project / "for others"
    updates = 0
    before: dict[str, set[str]] = {}
    odd: dict[Path, list[str]] = {}
    for line in commands.splitlines():
        first, *rest = shlex.split(line)
        if first == "python":
            monkeypatch.setattr(sys, "argv", rest)
            runpy.run_path(rest[0], run_name="__main__")
            if updates == 1:
                odd = write_odd_files(project / "landing")
        else:
            more = ["--param", f"export={export}"] if rest[0] == "run" else []
            assert (first, main([*rest, *more])) == ("lakelet", 0), line
        if rest[0] == "run":
            updates += 1
            if updates == 1:
                assert sent(export) == Counter(check(project)["sensitive_changes"])
                before = files_of(project, "calls_daily")
    assert updates == 2
    shown = capsys.readouterr().out
    assert "arn:aws:" in shown.splitlines()[-3]

    stored = table(project, "audit_records").to_pyarrow_table(columns=["record", "source_file"]).to_pylist()
    for path, records in odd.items():
        assert [normal(row["record"]) for row in stored if row["source_file"].endswith(path.name)] == list(map(normal, records))
        path.unlink()  # the oracle reads files that are one log
    wanted = check(project)
    assert len(wanted["events"]) > 15_000
    assert sent(export) == Counter(wanted["sensitive_changes"])
    assert max(sent(export).values()) == 1

    # Late files came for some days: the rollups of the other days are the files of the first update.
    after = files_of(project, "calls_daily")
    assert {day for day in before if after[day] == before[day]} >= {"event_date=2026-02-28"}
    assert main(["events", "--type", "planning_information"]) == 0
    in_part = r"(?:PARTITION_OVERWRITE|GROUP_AGGREGATE) because main\.audit\.events appended [\d.]+ %"
    assert len(re.findall(in_part, capsys.readouterr().out)) == 3

    assert main(["maintain", "events", "--json"]) == 0
    (events,) = json.loads(capsys.readouterr().out)
    assert (events["optimize"], events["columns"], events["notes"]) == ("zorder", ["user_arn"], [])
    check(project)


@pytest.mark.slow
def test_the_audit_example_sends_nothing_without_its_parameter(load_pipeline: Callable[..., Any]) -> None:
    file = ROOT / "examples" / "audit" / "pipelines" / "send.py"
    assert [*load_pipeline(file).functions] == []
    assert [*load_pipeline(file, conf={"export": "somewhere"}).functions] == ["send_sensitive_changes"]


@pytest.mark.slow
@pytest.mark.real_data
def test_real_cloudtrail_files_give_the_tables_of_the_oracle(project: Path, spark: Any) -> None:
    if not SAMPLE.is_file():
        pytest.skip(f"{SAMPLE} is not there")
    landing = project / "landing"
    landing.mkdir()
    with tarfile.open(SAMPLE) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith(".json") else None
            if content is not None:
                (landing / (Path(member.name).name + ".gz")).write_bytes(gzip.compress(content.read()))
    assert main(["run"]) == 0
    assert len(check(project)["events"]) == 2_900


@contextmanager
def readers(project: Path) -> Iterator[dict[str, dict[int, Any]]]:
    """Reads the newest version of two tables again and again meanwhile; yields what it has seen, by table and version."""
    seen: dict[str, dict[int, Any]] = {"audit_records": {}, "events": {}}
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for name, versions in seen.items():
                with suppress(TableNotFoundError):  # before its first commit
                    found = table(project, name)
                    versions.setdefault(found.version(), found.to_pyarrow_table(columns=["event_id", "source_file"]).to_pylist())
            done.wait(0.05)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
def test_readers_see_whole_files_in_their_order_the_newest_first_while_an_update_writes(project: Path, spark: Any) -> None:
    made = runpy.run_path(str(project / "generate.py"))
    landing, count = project / "landing", 8
    paths = []
    for number, (name, content) in enumerate(made["files"](2, count // 2, 40, 5)):
        made["write"](landing / name, content)
        os.utime(landing / name, (1_800_000_000 + number, 1_800_000_000 + number))
        paths.append(landing / name)
    with readers(project) as seen:
        assert main(["run", "--param", "newest_first=true", "--param", "files_per_batch=1"]) == 0
    check(project)

    newest_first = paths[::-1]
    records = [len(list(oracle.records_of(path))) for path in newest_first]
    prefixes = [sum(records[:end]) for end in range(count + 1)]
    for version, found in seen["audit_records"].items():
        in_files = Counter(Path(row["source_file"]).name for row in found)
        assert in_files == {path.name: n for path, n in zip(newest_first[: version + 1], records, strict=False)}
        assert len(found) == prefixes[version + 1]
    ids = [{r["eventID"] for r in oracle.records_of(path) if oracle.event_of(r) is not None} for path in newest_first]
    known = [set().union(*ids[:end]) for end in range(1, count + 1)]
    for version, found in seen["events"].items():
        assert {row["event_id"] for row in found} == known[version], f"version {version} of events is not a prefix of the files"
    assert len(seen["audit_records"]) > 2
    assert len(seen["events"]) > 2


@pytest.mark.slow
def test_live_records_are_in_the_tables_while_a_backlog_is_read(project: Path, spark: Any) -> None:
    made = runpy.run_path(str(project / "generate.py"))
    landing, count = project / "landing", 50
    *backlog, (live_name, live_content) = made["files"](2, (count + 2) // 2, 10, 5)
    for number, (name, content) in enumerate(backlog):
        made["write"](landing / name, content)
        os.utime(landing / name, (1_700_000_000 + number, 1_700_000_000 + number))
    oldest, live = landing / backlog[0][0], landing / live_name
    seen = dict[str, set[str]]()

    def stored(name: str, column: str) -> set[str]:
        try:
            return set(table(project, name).to_pyarrow_table(columns=[column])[column].to_pylist())
        except TableNotFoundError:
            return set()

    def wait_for(condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + 90
        while not condition() and time.monotonic() < give_up:
            time.sleep(0.1)

    def watch() -> None:
        wait_for(lambda: bool(stored("events", "event_id")))
        made["write"](live, live_content)
        new = {record["eventID"] for record in oracle.records_of(live) if oracle.event_of(record) is not None}
        wait_for(lambda: new <= stored("events", "event_id"))
        seen.update(events=stored("events", "event_id") & new, files=stored("audit_records", "source_file"), new=new)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert main(["run", "--continuous", "--param", "newest_first=true", "--param", "files_per_batch=1"]) == 130
    finally:
        watcher.join()
    assert seen["events"] == seen["new"] != set()
    assert not any(path.endswith(oldest.name) for path in seen["files"]), "the backlog was read first"
    assert main(["run"]) == 0
    check(project)
