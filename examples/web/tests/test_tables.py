"""The tables of two deliveries, the second with late and repeated events, against what tests/oracle.py reads from the files alone."""

from tests.oracle import TABLES, differences

from generate import delivery, write

KEY = "only for the tests: 32 bytes at least"


def test_every_table_is_what_the_files_say_and_each_event_is_there_once(lakelet, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_WEB_PII_KEY", KEY)
    p = lakelet()
    lines, events = 0, set()
    for number in (1, 2):
        lines += write(number, p.landing, count=60)
        files = delivery(number, count=60).values()
        events |= {(row["event_id"], row["Event Time"], row["user"]) for rows in files for row in rows}
        p.update()
        assert differences({table: p.rows(table) for table in TABLES}, p.landing, KEY) == []
        assert len(p.rows("web_events")) == len(events)
    assert len(events) < lines
    assert all(p.rows(table) for table in TABLES)
