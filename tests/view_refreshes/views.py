"""The views whose refreshes are compared: the text of their pipeline file, and the same queries on plain tables.

Each query has one answer: rows that it puts in order differ in what they are ordered by or are equal, and sums of floats are exact.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.view_refreshes.tables import ACCOUNT_EVENTS, TABLES


@dataclass(frozen=True)
class Rule:
    """An expectation. `action`: warn, drop or fail."""

    name: str
    constraint: str
    action: str


@dataclass(frozen=True)
class View:
    """One view.

    Attributes:
        text: a query in SQL; or, of `python`, the statements of a function's body.
        partitions: partition columns of its table.
        reads: other views that it reads.
        temporary: a name for a query that is not stored.
        always: its query has another answer at another time, so that it is computed by each update.
        whole: no technique but a full computation can be right.
        later: the query after its author has changed it.
    """

    name: str
    text: str
    python: bool = False
    partitions: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    reads: tuple[str, ...] = ()
    temporary: bool = False
    always: bool = False
    whole: bool = False
    later: str | None = None

    def changed(self) -> View:
        return self if self.later is None else replace(self, text=self.later, later=self.text)


def sql(name: str, text: str, **more: object) -> View:
    return View(name, textwrap.dedent(text).strip(), **more)  # type: ignore[arg-type]


def python(name: str, text: str, **more: object) -> View:
    return View(name, textwrap.dedent(text).strip(), python=True, **more)  # type: ignore[arg-type]


ROW_WISE = (
    sql("kept", "SELECT id, k, upper(k) AS u, amount * 2 AS twice, CAST(at AS DATE) AS day, f FROM facts WHERE n > 0 OR n IS NULL",
        later="SELECT id, k, upper(k) AS u, amount * 3 AS twice, CAST(at AS DATE) AS day, f FROM facts WHERE n > 0 OR n IS NULL"),
    python("tagged", """return dlt.read("facts").select("id", "k", F.explode("tags").alias("tag")).where("tag <> 'x' OR tag IS NULL")"""),
    python("tagged_or_not", """return dlt.read("facts").selectExpr("id", "explode_outer(tags) AS tag", "note")"""),
    sql("both", "SELECT id, k, amount, 'fact' AS kind FROM facts UNION ALL SELECT id, k, -amount, 'other' FROM others WHERE grp >= 0"),
    sql("same_twice", "SELECT id, k FROM facts WHERE ok UNION ALL SELECT id, k FROM facts WHERE n > 3"),
    sql("priced", "SELECT f.id, f.k, d.name, f.amount * d.rate AS price FROM facts f JOIN dims d ON f.k = d.k WHERE d.region <> 's'"),
    python("known", """
        facts, dims = dlt.read("facts"), dlt.read("dims").withColumnRenamed("k", "key")
        return facts.join(dims, facts.k.eqNullSafe(dims.key), "left").select("id", "k", "name", F.col("rate").isNull().alias("free"))
    """),
    sql("unknown", "SELECT f.id, f.k, f.note FROM facts f LEFT JOIN dims d ON f.k = d.k WHERE d.k IS NULL"),
    sql("in_right_order", "SELECT d.name, f.id, f.at FROM dims d RIGHT JOIN facts f ON f.k = d.k AND f.grp = 1"),
    sql("whole_outer", "SELECT f.id, f.k AS fk, d.k AS dk, d.name FROM facts f FULL OUTER JOIN dims d ON f.k = d.k"),
    sql("without", "SELECT f.id, f.k FROM facts f LEFT ANTI JOIN dims d ON f.k = d.k"),
    sql("with_any", "SELECT f.id, f.k FROM facts f LEFT SEMI JOIN others o ON f.k = o.k AND f.grp <=> o.grp"),
    sql("in_list", "SELECT id, k FROM facts WHERE k IN (SELECT k FROM dims WHERE region = 'n')"),
    sql("above_average", "SELECT id, amount FROM facts WHERE amount > (SELECT avg(amount) FROM others)"),
    sql("exists_some", "SELECT f.id FROM facts f WHERE EXISTS (SELECT 1 FROM others o WHERE o.k = f.k AND o.amount > f.amount)"),
    sql("near", "SELECT f.id, o.id AS other, f.k FROM facts f JOIN others o ON f.k = o.k AND o.at BETWEEN f.at - INTERVAL 1 HOUR AND f.at"),
    sql("crossed", "SELECT d.name, g.column1 AS g FROM dims d CROSS JOIN (SELECT explode(array(1, 2)) AS column1) g"),
    sql("neighbours", "SELECT a.id, b.id AS next FROM facts a JOIN facts b ON a.k = b.k AND b.id = a.id + 1"),
    sql("parted_rows", "SELECT grp, id, k, amount FROM facts WHERE ok IS NOT NULL", partitions=("grp",)),
    sql("minus", "SELECT k, grp FROM facts EXCEPT SELECT k, grp FROM others"),
    sql("common", "SELECT k, grp FROM facts INTERSECT SELECT k, grp FROM others"),
    sql("minus_all", "SELECT k FROM facts EXCEPT ALL SELECT k FROM others", whole=True),
)  # fmt: skip

GROUPED = (
    sql("by_key", """
        SELECT k, count(*) AS rows, count(n) AS ns, sum(n) AS total, sum(amount) AS money, sum(huge) AS huge, min(at) AS first, max(at) AS last,
               min(amount) AS least, max(note) AS most, bool_and(ok) AS every_ok, bool_or(ok) AS some_ok
        FROM facts GROUP BY k
    """, later="SELECT k, count(*) AS rows, max(n) AS ns FROM facts WHERE grp >= 0 GROUP BY k"),
    sql("counts", "SELECT grp, k, count(*) AS rows FROM facts GROUP BY grp, k"),
    sql("counts_if", "SELECT grp, count(*) FILTER (WHERE ok) AS oks, sum(CASE WHEN n > 3 THEN 1 ELSE 0 END) AS many, count_if(n > 3) AS c FROM facts GROUP BY grp"),
    python("averages", """
        return dlt.read("facts").groupBy("grp").agg(F.avg("f").alias("f"), F.avg("amount").alias("a"), F.sum("f").alias("s"), F.count("f").alias("c"))
    """),
    sql("varied", """
        SELECT grp, ok, count(DISTINCT k) AS keys, percentile(n, 0.5) AS half, max_by(note, struct(at, id, note)) AS newest,
               sort_array(collect_set(k)) AS all_keys, stddev_pop(n) IS NULL AS none
        FROM facts GROUP BY grp, ok
    """),
    sql("busy", "SELECT k, sum(n) AS total FROM facts GROUP BY k HAVING count(*) > 3", later="SELECT k, sum(n) AS total FROM facts GROUP BY k HAVING count(*) > 1"),
    sql("hourly", "SELECT date_trunc('HOUR', at) AS hour, upper(k) AS u, count(*) AS rows, sum(amount) AS money FROM facts GROUP BY 1, 2"),
    sql("monthly", "SELECT date_trunc('MONTH', at) AS month, max(n) AS most, min(f) AS least FROM facts GROUP BY 1"),
    sql("weekly", "SELECT date_trunc('WEEK', at) AS week, k, avg(n) AS mean FROM facts GROUP BY date_trunc('WEEK', at), k"),
    sql("daily", "SELECT CAST(at AS DATE) AS day, grp, count(*) AS rows, sum(amount) AS money FROM facts GROUP BY 1, 2", partitions=("day",)),
    python("windows_of_time", """
        counted = dlt.read("facts").groupBy(F.window("at", "2 hours"), "k").agg(F.count("*").alias("rows"))
        return counted.select(F.col("window.start").alias("start"), F.col("window.end").alias("end"), "k", "rows")
    """),
    sql("by_float", "SELECT f, count(*) AS rows, max(id) AS last FROM facts GROUP BY f"),
    sql("by_decimal", "SELECT amount, ok, min(id) AS first FROM facts GROUP BY amount, ok"),
    sql("by_struct", "SELECT s, count(*) AS rows FROM (SELECT struct(k, grp) AS s FROM facts) GROUP BY s"),
    sql("by_tags", "SELECT tags, count(*) AS rows FROM facts GROUP BY tags"),
    sql("by_text_of_group", "SELECT CAST(grp AS STRING) AS g, sum(n) AS total FROM facts GROUP BY grp"),
    sql("key_left_out", "SELECT sum(n) AS total, max(k) AS k FROM facts GROUP BY k, grp"),
    sql("by_tag", "SELECT tag, count(*) AS rows, sum(n) AS total FROM facts LATERAL VIEW explode(tags) t AS tag GROUP BY tag"),
    sql("totals_of_totals", "SELECT total, count(*) AS keys FROM (SELECT k, sum(n) AS total FROM facts GROUP BY k) GROUP BY total"),
    sql("best_of_group", "SELECT grp, max(total) AS best FROM (SELECT grp, k, sum(n) AS total FROM facts GROUP BY grp, k) GROUP BY grp"),
    sql("rolled_up", "SELECT k, grp, count(*) AS rows FROM facts GROUP BY ROLLUP (k, grp)"),
    sql("cube_of", "SELECT k, ok, sum(n) AS total, grouping_id() AS level FROM facts GROUP BY CUBE (k, ok)"),
    python("pivoted", """return dlt.read("facts").groupBy("k").pivot("grp", [0, 1]).agg(F.sum("n"))"""),
    sql("ratio", "SELECT k, sum(amount) / count(*) AS ratio, sum(n) + 1 AS more FROM facts GROUP BY k"),
    sql("whole_table", "SELECT count(*) AS rows, sum(amount) AS money, max(at) AS last, count(DISTINCT k) AS keys FROM facts"),
    sql("whole_sums", "SELECT count(*) AS rows, sum(amount) AS money, max(at) AS last FROM facts"),
    sql("sorted_sums", "SELECT grp, sum(n) AS total FROM facts GROUP BY grp ORDER BY total DESC NULLS LAST, grp"),
    sql("distinct_pairs", "SELECT DISTINCT k, grp FROM facts"),
    sql("distinct_upper", "SELECT DISTINCT upper(k) AS u, CAST(at AS DATE) AS day FROM facts WHERE n IS NOT NULL"),
    sql("one_of_both", "SELECT k, grp FROM facts UNION SELECT k, grp FROM others"),
    sql("group_by_constant", "SELECT 1 AS one, count(*) AS rows FROM facts GROUP BY 1"),
    python("without_duplicates", """return dlt.read("facts").select("k", "ok", "n").dropDuplicates()"""),
    sql("with_constant_key", "SELECT 'all' AS what, k, count(*) AS rows FROM facts GROUP BY k, 'all'"),
)  # fmt: skip

JOINED = (
    sql("sales", "SELECT d.region, count(*) AS rows, sum(f.amount * d.rate) AS price FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.region"),
    sql("sales_by_day", """
        SELECT CAST(f.at AS DATE) AS day, d.name, sum(f.amount) AS money FROM facts f JOIN dims d ON f.k = d.k AND d.rate > 1 GROUP BY 1, 2
    """),
    sql("sales_left", """
        SELECT f.k, f.grp, count(d.name) AS names, max(d.name) AS name, count(*) AS rows FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY f.k, f.grp
    """),
    sql("sales_named", "SELECT d.name, count(*) AS rows FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY d.name"),
    sql("sales_both_keys", "SELECT f.grp, d.region, sum(f.n) AS total FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY f.grp, d.region"),
    sql("missing_names", "SELECT f.k, count(*) AS rows FROM facts f LEFT JOIN dims d ON f.k = d.k AND d.name <> '' WHERE d.name IS NULL GROUP BY f.k"),
    sql("three_tables", """
        SELECT o.grp, d.region, count(*) AS rows, max(o.amount) AS most
        FROM others o JOIN facts f ON o.k = f.k JOIN dims d ON d.k = f.k GROUP BY o.grp, d.region
    """),
    sql("both_ways", "SELECT k, sum(v) AS v FROM (SELECT k, n AS v FROM facts UNION ALL SELECT upper(k), -CAST(n AS BIGINT) FROM facts WHERE ok) GROUP BY k"),
    sql("of_two", "SELECT k, kind, count(*) AS rows FROM (SELECT k, 1 AS kind FROM facts UNION ALL SELECT k, 2 FROM others) GROUP BY k, kind"),
    sql("pairs", "SELECT a.k, count(*) AS pairs FROM facts a JOIN facts b ON a.k = b.k AND a.id < b.id GROUP BY a.k"),
    sql("compared", """
        WITH sums AS (SELECT k, grp, sum(n) AS total FROM facts GROUP BY k, grp)
        SELECT a.k, a.grp, a.total, b.grp AS other, b.total AS others FROM sums a JOIN sums b ON a.k = b.k AND a.grp < b.grp
    """),
    sql("share_of_key", """
        WITH rows AS (SELECT k, grp, n FROM facts WHERE n IS NOT NULL), sums AS (SELECT k, sum(n) AS total FROM rows GROUP BY k)
        SELECT r.k, r.grp, sum(r.n) AS part, max(s.total) AS total FROM rows r JOIN sums s ON r.k <=> s.k GROUP BY r.k, r.grp
    """),
    sql("sums_beside_names", "SELECT d.name, s.k, s.total FROM (SELECT k, sum(n) AS total FROM facts GROUP BY k) s JOIN dims d ON s.k = d.k"),
    sql("sums_left_of_names", "SELECT s.k, d.name, s.total FROM (SELECT k, count(*) AS total FROM facts GROUP BY k) s LEFT JOIN dims d ON s.k = d.k"),
    sql("left_of_sums", "SELECT d.k, d.name, s.total FROM dims d LEFT JOIN (SELECT k, count(*) AS total FROM facts GROUP BY k) s ON s.k = d.k"),
    sql("using_key", "SELECT k, grp, count(*) AS rows FROM facts JOIN others USING (k, grp) GROUP BY k, grp"),
)  # fmt: skip

WINDOWED = (
    sql("latest", """
        SELECT k, grp, id, at, note FROM (
            SELECT *, row_number() OVER (PARTITION BY k, grp ORDER BY at DESC, id DESC, note DESC) AS place FROM facts
        ) WHERE place = 1
    """),
    python("newest", """
        by_key = Window.partitionBy("k").orderBy(F.desc("at"), F.desc("id"), F.desc("n"))
        return dlt.read("facts").withColumn("place", F.row_number().over(by_key)).where("place <= 2").select("k", "id", "n", "place")
    """),
    sql("running", """
        SELECT k, at, id, n, sum(n) OVER (PARTITION BY k ORDER BY at, id, n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far FROM facts
    """),
    sql("shares", "SELECT k, grp, count(*) AS rows, sum(count(*)) OVER (PARTITION BY k) AS of_key FROM facts GROUP BY k, grp"),
    sql("ranked", "SELECT grp, k, rank() OVER (PARTITION BY grp ORDER BY total DESC) AS place FROM (SELECT grp, k, sum(n) AS total FROM facts GROUP BY grp, k)"),
    sql("qualified", "SELECT grp, id, amount FROM facts QUALIFY dense_rank() OVER (PARTITION BY grp ORDER BY amount DESC) <= 2"),
    sql("two_windows", """
        SELECT k, grp, id, count(*) OVER (PARTITION BY k) AS of_key, count(*) OVER (PARTITION BY k, grp) AS of_both FROM facts
    """),
    sql("other_windows", "SELECT k, grp, id, count(*) OVER (PARTITION BY k) AS of_key, count(*) OVER (PARTITION BY grp) AS of_group FROM facts"),
    sql("window_by_day", "SELECT CAST(at AS DATE) AS day, id, lag(id) OVER (PARTITION BY CAST(at AS DATE) ORDER BY id, n) AS before FROM facts"),
    sql("window_of_all", "SELECT id, k, count(*) OVER () AS rows FROM facts"),
    sql("latest_named", """
        SELECT l.k, l.id, d.name FROM (
            SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY at DESC, id DESC) AS place FROM facts
        ) l JOIN dims d ON l.k = d.k WHERE l.place = 1
    """),
    sql("latest_counted", """
        SELECT grp, count(*) AS keys, sum(n) AS total FROM (
            SELECT grp, k, n, row_number() OVER (PARTITION BY grp, k ORDER BY at DESC, id DESC, n DESC) AS place FROM facts
        ) WHERE place = 1 GROUP BY grp
    """),
    sql("moving_counts", "SELECT grp, day, sum(rows) OVER (PARTITION BY grp ORDER BY day ROWS 1 PRECEDING) AS two FROM (SELECT grp, CAST(at AS DATE) AS day, count(*) AS rows FROM facts GROUP BY 1, 2)"),
)  # fmt: skip

CHAINED = (
    sql("key_totals", "SELECT k, rows, money FROM by_key WHERE rows > 1", reads=("by_key",)),
    sql("by_size", "SELECT rows, count(*) AS keys, sum(money) AS money FROM key_totals GROUP BY rows", reads=("key_totals",)),
    sql("of_kept", "SELECT day, count(*) AS rows, sum(twice) AS twice FROM kept GROUP BY day", reads=("kept",)),
    sql("days_with_names", "SELECT d.day, d.money, n.name FROM (SELECT day, sum(money) AS money FROM daily GROUP BY day) d JOIN priced n ON n.id = day(d.day)",
        reads=("daily", "priced")),
    sql("latest_of_group", "SELECT grp, count(*) AS keys, max(at) AS at FROM latest GROUP BY grp", reads=("latest",)),
    sql("distinct_of_both", "SELECT DISTINCT kind, k FROM both", reads=("both",)),
    python("clean", """return dlt.read("facts").where("n IS NOT NULL").select("k", "grp", "n", "at")""", temporary=True,
           rules=(Rule("small", "n < 1000000", "drop"), Rule("in_group", "grp IS NOT NULL", "warn"))),
    sql("of_clean", "SELECT k, count(*) AS rows, sum(n) AS total FROM clean GROUP BY k", reads=("clean",)),
    python("plain", """return dlt.read("facts").where("grp >= 0").selectExpr("k", "grp", "n + CAST(1 AS BIGINT) AS n")""", temporary=True),
    sql("of_plain", "SELECT grp, max(n) AS most, sum(n) AS total FROM plain GROUP BY grp", reads=("plain",)),
    python("kept_twice", """
        plain = dlt.read("plain")
        return plain.groupBy("k").agg(F.count("*").alias("rows")).join(plain.groupBy("k").agg(F.max("n").alias("n")), "k")
    """, reads=("plain",)),
)  # fmt: skip

JUDGED = (
    sql("warned", "SELECT k, count(*) AS rows, sum(n) AS total FROM facts GROUP BY k",
        rules=(Rule("has_key", "k IS NOT NULL", "warn"), Rule("some", "total > 10", "warn"))),
    sql("warned_rows", "SELECT id, k, n FROM facts", rules=(Rule("has_key", "k <> ''", "warn"), Rule("positive", "n > 0", "warn"))),
    sql("dropped", "SELECT grp, sum(n) AS total FROM facts GROUP BY grp", rules=(Rule("has_group", "grp IS NOT NULL", "drop"), Rule("some", "total > 0", "drop"))),
    sql("dropped_rows", "SELECT id, grp, n FROM facts WHERE k <> 'b'", rules=(Rule("has_group", "grp >= 0", "drop"), Rule("even", "n % 2 = 0", "warn"))),
    sql("guarded", "SELECT grp, min(n) AS least, count(*) AS rows FROM facts GROUP BY grp", rules=(Rule("no_poison", "least IS NULL OR least <> -666", "fail"),)),
    sql("guarded_rows", "SELECT id, n FROM facts WHERE ok", rules=(Rule("no_poison", "n IS NULL OR n <> -666", "fail"), Rule("has_n", "n IS NOT NULL", "warn"))),
    python("judged_latest", """
        by_key = Window.partitionBy("k").orderBy(F.desc("at"), F.desc("id"), F.desc("n"))
        return dlt.read("facts").withColumn("place", F.row_number().over(by_key)).where("place = 1").select("k", "id", "n")
    """, rules=(Rule("has_n", "n IS NOT NULL", "warn"),)),
)  # fmt: skip

NESTED = (
    sql("named_or_none", "SELECT coalesce(d.name, 'none') AS name, count(*) AS rows FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY 1"),
    sql("key_of_right", "SELECT d.k, count(f.id) AS rows, max(f.n) AS most FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY d.k"),
    sql("key_of_either", "SELECT coalesce(f.k, d.k) AS k, count(*) AS rows FROM facts f FULL OUTER JOIN dims d ON f.k = d.k GROUP BY 1"),
    sql("sums_of_branches", """
        SELECT k, sum(total) AS total FROM (
            SELECT k, sum(n) AS total FROM facts GROUP BY k UNION ALL SELECT k, count(*) FROM others GROUP BY k
        ) GROUP BY k
    """),
    sql("count_of_distinct", "SELECT k, count(*) AS pairs FROM (SELECT DISTINCT k, grp, ok FROM facts) GROUP BY k"),
    sql("exploded_sets", "SELECT k, explode(sort_array(collect_set(grp))) AS grp FROM facts GROUP BY k"),
    sql("of_large_keys", "SELECT id, k FROM facts WHERE k IN (SELECT k FROM facts GROUP BY k HAVING count(*) > 2)"),
    sql("of_large_others", "SELECT k, count(*) AS rows FROM facts WHERE k IN (SELECT k FROM others GROUP BY k HAVING count(*) > 2) GROUP BY k"),
    sql("counts_without", "SELECT f.k, f.grp, count(*) AS rows FROM facts f LEFT ANTI JOIN others o ON f.k = o.k AND f.grp = o.grp GROUP BY f.k, f.grp"),
    sql("counts_with_any", "SELECT f.grp, count(*) AS rows FROM facts f LEFT SEMI JOIN dims d ON f.k = d.k GROUP BY f.grp"),
    sql("latest_by_group", """
        SELECT grp, count(*) AS keys FROM (
            SELECT grp, k, row_number() OVER (PARTITION BY k ORDER BY at DESC, id DESC, grp) AS place FROM facts
        ) WHERE place = 1 GROUP BY grp
    """),
    sql("group_of_latest", """
        SELECT k, grp, note FROM (
            SELECT k, grp, note, max(id) OVER (PARTITION BY k) AS newest, id FROM facts
        ) WHERE id = newest
    """),
    sql("most_of_others", "SELECT f.id, f.k, (SELECT max(o.amount) FROM others o WHERE o.k = f.k) AS most FROM facts f"),
    sql("key_twice", "SELECT k AS a, k AS b, count(*) AS rows FROM facts GROUP BY k"),
    sql("by_case", "SELECT CASE WHEN n > 3 THEN k ELSE 'few' END AS c, count(*) AS rows, sum(amount) AS money FROM facts GROUP BY 1"),
    sql("by_day_and_hour", "SELECT CAST(at AS DATE) AS day, date_trunc('HOUR', at) AS hour, count(*) AS rows FROM facts GROUP BY 1, 2"),
    sql("by_second", "SELECT CAST(at AS BIGINT) AS second, count(*) AS rows FROM facts GROUP BY 1"),
    sql("by_day_elsewhere", "SELECT CAST(from_utc_timestamp(at, 'Asia/Tokyo') AS DATE) AS day, count(*) AS rows, max(n) AS most FROM facts GROUP BY 1"),
    sql("by_quarter", "SELECT date_trunc('QUARTER', at) AS quarter, date_trunc('YEAR', at) AS year, count(*) AS rows FROM facts GROUP BY 1, 2"),
    sql("distinct_of_window", "SELECT DISTINCT k, max(n) OVER (PARTITION BY k) AS most FROM facts"),
    sql("window_of_join", "SELECT f.id, d.region, count(*) OVER (PARTITION BY d.region) AS rows FROM facts f JOIN dims d ON f.k = d.k"),
    sql("window_of_left_join", "SELECT f.k, f.id, d.name, rank() OVER (PARTITION BY f.k ORDER BY d.name, f.id) AS place FROM facts f LEFT JOIN dims d ON f.k = d.k"),
    sql("window_of_union", """
        SELECT k, id, kind, count(*) OVER (PARTITION BY k) AS rows FROM (SELECT k, id, 1 AS kind FROM facts UNION ALL SELECT k, id, 2 FROM others)
    """),
    sql("sums_joined_to_sums", """
        SELECT a.k, a.total, b.money FROM (SELECT k, sum(n) AS total FROM facts GROUP BY k) a
        JOIN (SELECT k, sum(amount) AS money FROM others GROUP BY k) b ON a.k = b.k
    """),
    sql("sums_left_of_sums", """
        SELECT a.k, a.total, b.money FROM (SELECT k, sum(n) AS total FROM facts GROUP BY k) a
        LEFT JOIN (SELECT k, sum(amount) AS money FROM others GROUP BY k HAVING count(*) > 1) b ON a.k <=> b.k
    """),
    sql("sums_where_named", "SELECT f.k, sum(f.n) AS total FROM facts f LEFT JOIN dims d ON f.k = d.k WHERE d.region IS NULL OR d.region = 'n' GROUP BY f.k"),
    sql("second_of_two_joins", """
        SELECT f.grp, count(*) AS rows, count(o.id) AS others, count(d.k) AS dims
        FROM facts f LEFT JOIN others o ON f.k = o.k LEFT JOIN dims d ON o.k = d.k GROUP BY f.grp
    """),
    sql("stars", "SELECT k, count(*) AS rows FROM (SELECT f.k, d.name, o.amount FROM facts f JOIN dims d USING (k) LEFT JOIN others o USING (k)) GROUP BY k"),
    sql("deep", """
        WITH a AS (SELECT k, grp, n FROM facts WHERE n IS NOT NULL), b AS (SELECT k, grp, sum(n) AS total FROM a GROUP BY k, grp),
             c AS (SELECT k, max(total) AS best FROM b GROUP BY k), e AS (SELECT b.k, b.grp, b.total FROM b JOIN c ON b.k <=> c.k AND b.total = c.best)
        SELECT k, count(*) AS winners, max(grp) AS grp FROM e GROUP BY k
    """),
    python("same_frame_twice", """
        facts = dlt.read("facts").select("k", "grp", "n", "ok")
        return facts.where("ok IS NULL").union(facts.where("n > 3")).groupBy("k").agg(F.count("*").alias("rows"))
    """),
    python("joined_frame", """
        facts = dlt.read("facts").select("k", "n")
        most = facts.groupBy("k").agg(F.max("n").alias("most"))
        return facts.join(most, "k").where("n = most").groupBy("k").agg(F.count("*").alias("rows"))
    """),
    python("filled", """return dlt.read("facts").fillna("none", ["k"]).groupBy("k").agg(F.sum("n").alias("n"))"""),
)  # fmt: skip

CHANGED = (
    sql("balances", "SELECT name, count(*) AS accounts, sum(balance) AS balance FROM accounts GROUP BY name"),
    sql("accounts_with_facts", "SELECT a.name, count(*) AS rows, max(f.at) AS last FROM facts f JOIN accounts a ON f.k = a.k GROUP BY a.name"),
    sql("rich", "SELECT k, upper(name) AS name, balance FROM accounts WHERE balance > 100"),
    sql("versions", "SELECT k, count(*) AS versions, max(balance) AS most FROM account_history GROUP BY k"),
    sql("at_that_time", "SELECT f.id, h.name FROM facts f LEFT JOIN account_history h ON f.k = h.k AND h.__START_AT <= f.id AND (h.__END_AT > f.id OR h.__END_AT IS NULL)"),
)  # fmt: skip

AT_LEAST_WHOLE = (
    sql("aged", "SELECT k, count(*) AS rows, max(datediff(current_date(), CAST(at AS DATE)) < 0) AS ahead FROM facts GROUP BY k", always=True, whole=True),
    sql("first_five", "SELECT id, k, n FROM facts ORDER BY id, n, k, at, note LIMIT 5", whole=True),
    python("offset_rows", """return dlt.read("facts").select("id").distinct().orderBy("id").offset(3)""", whole=True),
)  # fmt: skip

POOL: Mapping[str, View] = {
    v.name: v for v in (*ROW_WISE, *GROUPED, *JOINED, *WINDOWED, *CHAINED, *JUDGED, *NESTED, *CHANGED, *AT_LEAST_WHOLE)
}


FITTING: Mapping[str, Sequence[View]] = {
    "append": (*ROW_WISE, *JUDGED, *CHANGED),
    "rows": (*ROW_WISE, *JUDGED, *CHANGED),
    "merge": (*GROUPED, *JOINED, *NESTED),
    "groups": (*GROUPED, *JOINED, *NESTED, *CHAINED, *JUDGED, *CHANGED),
    "windows": (*WINDOWED, *NESTED),
}
"""By technique the kinds of views that it may be right for; other techniques may be for all kinds."""


def chosen(rng: random.Random, count: int, technique: str | None) -> list[View]:
    """So many views of those that a technique may be right for, and what they read."""
    names = [view.name for view in FITTING.get(technique or "", tuple(POOL.values()))]
    return with_inputs(rng.sample(names, min(count, len(names))))


def with_inputs(names: Iterable[str]) -> list[View]:
    """The views of these names and all that they read, each after what it reads."""
    found: dict[str, View] = {}

    def add(name: str) -> None:
        for read in POOL[name].reads:
            add(read)
        found.setdefault(name, POOL[name])

    for name in names:
        add(name)
    return list(found.values())


# --- the pipeline file --------------------------------------------------------------------------------------------------------------------

_HEAD = '''
"""Tables that files and others write to, and views of them."""

import dlt
from pyspark.sql import Window, functions as F

FILES = {"cloudFiles.format": "json"}
'''

_TABLE = """

@dlt.table
def {name}():
    return spark.readStream.format("cloudFiles").options(**FILES).schema("{ddl}").load(spark.conf.get("landing") + "/{name}")
"""

_CHANGES = """

@dlt.view
def account_events():
    return spark.readStream.format("cloudFiles").options(**FILES).schema("{ddl}").load(spark.conf.get("landing") + "/accounts")

for name, scd_type in (("accounts", 1), ("account_history", 2)):
    dlt.create_streaming_table(name)
    dlt.apply_changes(target=name, source="account_events", keys=["k"], sequence_by="seq", apply_as_deletes="gone",
                      except_column_list=["seq", "gone"], stored_as_scd_type=scd_type)
"""

_DECORATORS = {"warn": "expect", "drop": "expect_or_drop", "fail": "expect_or_fail"}
_VIOLATIONS = {"warn": "", "drop": " ON VIOLATION DROP ROW", "fail": " ON VIOLATION FAIL UPDATE"}


def reads_accounts(views: Iterable[View]) -> bool:
    """Whether one of the views reads the change tables, which the pipeline has only then."""
    return any("account" in view.text for view in views)


def pipeline_texts(folder: Path, views: Sequence[View]) -> dict[str, str]:
    """Texts of the pipeline's files by name: the tables, the views in Python and those in SQL. Makes the folders of the tables' files."""
    python_text, sql_text = _HEAD, "-- Views in SQL.\n"
    for table in TABLES.values():
        (folder / table.name).mkdir(parents=True, exist_ok=True)
        python_text += _TABLE.format(name=table.name, ddl=table.ddl)
    if reads_accounts(views):
        (folder / "accounts").mkdir(parents=True, exist_ok=True)
        python_text += _CHANGES.format(ddl=ACCOUNT_EVENTS.ddl)
    for view in views:
        if view.python:
            python_text += _python(view)
        else:
            sql_text += _sql(view)
    return {"pipeline.py": python_text, "views.sql": sql_text}


def _python(view: View) -> str:
    parts = f"(partition_cols={list(view.partitions)!r})" if view.partitions else ""
    lines = ["", "", "@dlt.view" if view.temporary else f"@dlt.table{parts}"]
    lines += [f"@dlt.{_DECORATORS[rule.action]}({rule.name!r}, {rule.constraint!r})" for rule in view.rules]
    return "\n".join([*lines, f"def {view.name}():", textwrap.indent(view.text, "    "), ""])


def _sql(view: View) -> str:
    rules = ", ".join(f"CONSTRAINT {rule.name} EXPECT ({rule.constraint}){_VIOLATIONS[rule.action]}" for rule in view.rules)
    parts = f" PARTITIONED BY ({', '.join(view.partitions)})" if view.partitions else ""
    kind = "TEMPORARY VIEW" if view.temporary else "OR REFRESH MATERIALIZED VIEW"
    return f"\nCREATE {kind} {view.name}{f' ({rules})' if rules else ''}{parts} AS\n{view.text};\n"
