"""More of SQL as hosted pipelines write it: forms that parsers stumble over, functions that Spark does not have, published views."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection import inspector as looking

FORMS = """\
CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('${landing}/in', format => 'json');
CREATE STREAMING TABLE events LOCATION '/mnt/lake/events' AS SELECT id, a, CAST(ts AS TIMESTAMP) AS ts, books FROM STREAM raw;
CREATE MATERIALIZED VIEW digits AS
  WITH 12m_payer AS (SELECT * FROM events), x AS (SELECT id, count(*) AS n FROM 12m_payer GROUP BY ALL) SELECT * FROM x;
CREATE STREAMING TABLE exploded AS SELECT id, b.book FROM STREAM events, LATERAL EXPLODE(books) AS b(book);
CREATE STREAMING TABLE marked AS
  SELECT window.start AS begin, count(*) AS n FROM STREAM(events) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS e
  GROUP BY window(ts, '5 minutes');
CREATE MATERIALIZED VIEW excepted AS
  SELECT * EXCEPT (f.a, e.ts, e.books, f.ts, f.books) FROM events e
  JOIN (SELECT id AS other, a, ts, books FROM events) f ON e.id = f.other;
CREATE MATERIALIZED VIEW computed
  (id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2), d STRING DEFAULT 'x', CONSTRAINT pk PRIMARY KEY (id))
  PARTITIONED BY (d) AS SELECT id FROM events;
CREATE MATERIALIZED VIEW without_as SELECT id FROM events;
CREATE TEMPORARY VIEW inner_view AS SELECT id, a FROM events;
CREATE VIEW published (number, name) COMMENT 'for others' AS SELECT id, upper(a) FROM events WHERE id < 2;
CREATE VIEW on_it AS SELECT p.name, d.n FROM published p JOIN digits d ON d.id = p.number;
"""


@pytest.mark.long
def test_forms_of_hosted_pipelines_and_published_views(project):
    p = project().write(FORMS, "forms.sql")
    p.arrive(
        "a.json", {"id": 1, "a": "x", "ts": "2024-01-01T00:00:00Z", "books": ["p", "q"]}, {"id": 2, "a": "y", "books": []}, folder="in"
    )
    p.run()
    assert p.rows("digits", "id", "n") == [(1, 1), (2, 1)]
    assert p.rows("exploded", "id", "book") == [(1, "p"), (1, "q")]
    assert p.rows("excepted") == [(1, "x", 1), (2, "y", 2)]
    assert p.rows("computed", "id", "twice", "d") == [(1, 2, "x"), (2, 4, "x")]
    assert p.rows("without_as") == [1, 2]

    storage = p.storage.root

    def asked(query: str) -> list[dict[str, object]]:
        return list(looking.run_sql(storage, query, spark=p.spark).rows)

    assert asked("SELECT * FROM published") == [{"number": 1, "name": "X"}]
    assert asked("SELECT * FROM main.default.on_it") == [{"name": "X", "n": 1}]
    assert asked("SELECT count(*) > 5 AS many FROM event_log(TABLE(digits)) WHERE event_type = 'flow_progress'") == [{"many": True}]
    names = {table.name.rpartition(".")[2] for table in looking.list_tables(storage, private=True)}
    assert not names & {"published", "on_it", "inner_view"}

    p.write(FORMS.partition("CREATE VIEW on_it")[0], "forms.sql").run()
    with pytest.raises(LakeletError) as error:
        asked("SELECT * FROM on_it")
    assert error.value.code == "UNKNOWN_TABLE"


def test_functions_that_this_session_does_not_have_are_refused_at_their_place(project):
    p = project().write(
        "CREATE STREAMING TABLE k AS SELECT * FROM STREAM read_kafka(bootstrapServers => 'localhost:9', subscribe => 't');\n"
        "CREATE MATERIALIZED VIEW e AS\n  SELECT * FROM event_log(TABLE(k));\n",
        "refused.sql",
    )
    found = {one.code: one.where.line for one in p.refused()}
    assert found == {"PACKAGE_MISSING": 1, "NOT_SUPPORTED_YET": 3}


@pytest.mark.slow
def test_SQ14_the_change_feed_of_a_table_by_its_function(project):
    p = project(
        """
        import dlt

        @dlt.table
        def told():
            return spark.sql("SELECT id, _change_type FROM table_changes('main.default.raw', 0, 0)")
        """
    )
    p.write(
        """
        CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('${landing}', format => 'json', schema => 'id INT');
        CREATE MATERIALIZED VIEW feed AS SELECT id, _commit_version AS v FROM table_changes('raw', 0) WHERE _change_type = 'insert';
        CREATE STREAMING TABLE streamed AS SELECT id FROM STREAM table_changes('raw', 0);
        CREATE MATERIALIZED VIEW outside AS SELECT id, _change_type AS kind FROM table_changes('shop.raw.orders', '2020-01-01');
        """,
        "feeds.sql",
    )
    orders = str(p.folder / "orders")
    p.spark.sql("SELECT 7 AS id").write.format("delta").option("delta.enableChangeDataFeed", "true").save(orders)
    p.spark.sql(f"UPDATE delta.`{orders}` SET id = 8")
    p.tables = [("shop.raw.orders", orders)]
    p.arrive("a.json", {"id": 1})
    p.run()
    p.arrive("b.json", {"id": 2})
    p.run()
    assert (p.rows("feed"), p.rows("told"), p.rows("streamed")) == ([(1, 0), (2, 1)], [(1, "insert")], [1, 2])
    assert p.rows("outside") == [(7, "insert"), (7, "update_preimage"), (8, "update_postimage")]
    assert p.run().statuses()["feed"] == "IDLE"
    p.write("CREATE MATERIALIZED VIEW bad AS SELECT * FROM table_changes('raw');", "bad.sql")
    (problem,) = p.refused()
    assert (problem.code, problem.where.line) == ("CF_INCORRECT_SQL_PARAMS", 1)
