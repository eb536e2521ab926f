"""Tables and queries on which both engines of `lakelet sql` must agree."""

# ruff: noqa: E501

from __future__ import annotations

FACTS_COLUMNS = """
    id INT, k BIGINT, small SMALLINT, s STRING, word STRING, d DECIMAL(12,3), price DECIMAL(5,2), t TIMESTAMP, n TIMESTAMP_NTZ, day DATE,
    bin BINARY, f DOUBLE, fl FLOAT, ok BOOLEAN, st STRUCT<a: INT, b: STRUCT<c: STRING, t: TIMESTAMP>>, ar ARRAY<INT>, m MAP<STRING, INT>,
    num STRING
"""
FACTS = """
    (1, 10, 1, 'alpha', 'x', 1.500, 9.99, TIMESTAMP'2026-03-01 08:00:00.123Z', TIMESTAMP_NTZ'2026-03-01 08:00:00', DATE'2026-03-01',
     X'0102', 1.5D, 1.5F, true, named_struct('a', 1, 'b', named_struct('c', 'q', 't', TIMESTAMP'2026-01-01 00:00:00Z')), array(1, NULL),
     map('k', 1), '17'),
    (2, 10, -3, 'Alpha', 'y', -1.505, -0.01, TIMESTAMP'2026-03-01 23:59:59.999999Z', TIMESTAMP_NTZ'2026-03-29 02:30:00', DATE'2026-03-02',
     X'', double('NaN'), float('NaN'), false, named_struct('a', NULL, 'b', NULL), array(), map(), '-4'),
    (3, -7, 2, ' padded  ', 'x', 0.001, 0.00, TIMESTAMP'2025-12-31 23:30:00Z', TIMESTAMP_NTZ'2025-12-31 23:30:00.5', DATE'2025-12-31',
     NULL, -0.0D, -0.0F, NULL, NULL, NULL, NULL, ' 5 '),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, 9007199254740993, 0, 'straße', 'z', 999999999.999, 999.99, TIMESTAMP'1969-12-31 23:59:59.5Z', TIMESTAMP_NTZ'1969-12-31 23:59:59.5',
     DATE'1969-12-31', X'FF', double('Infinity'), float('Infinity'), true,
     named_struct('a', 3, 'b', named_struct('c', '', 't', NULL)), array(3, 2, 1), map('a', NULL, 'b', 2), '1.5'),
    (6, 0, 7, '', 'x', -999999999.999, -999.99, TIMESTAMP'9999-12-31 00:00:00Z', TIMESTAMP_NTZ'0001-01-01 00:00:00', DATE'0001-01-01',
     X'00', 2.675D, 2.5F, false, named_struct('a', -1, 'b', named_struct('c', 'é', 't', NULL)), array(NULL), map('é', 0), 'abc'),
    (7, 3, 100, 'zz_%', 'y', 2.5, 2.50, TIMESTAMP'2024-02-29 12:00:00Z', TIMESTAMP_NTZ'2024-02-29 12:00:00', DATE'2024-02-29',
     X'0102', 1e-7D, 0.1F, true, named_struct('a', 1, 'b', NULL), array(5), map('k', 1), '2026-03-01')
"""
"""Seven rows with NULL, NaN, both zeros, letters outside of ASCII, ends of ranges."""

ANSWERED = """
SELECT count(*) FROM facts
SELECT count(*), count(k), count(DISTINCT word), count(1) FROM facts
SELECT COUNT(*) AS n FROM shop.facts
SELECT * FROM facts
SELECT * FROM facts ORDER BY id
SELECT id, K, facts.s, st.a, st.b.c, ST.B.T FROM Facts ORDER BY id DESC
SELECT f.* FROM facts f WHERE f.id = 3
SELECT id AS `a b`, s FROM main.shop.facts ORDER BY s
SELECT shop.facts.id, shop.facts.st.a FROM shop.facts WHERE shop.Facts.id > 2 ORDER BY shop.facts.id
SELECT main.shop.facts.id, shop.facts.s, facts.k FROM main.shop.facts ORDER BY main.shop.facts.id
SELECT shop.facts.*, p.id AS other FROM shop.facts JOIN shop.parts p ON shop.facts.id = p.id ORDER BY p.id
SELECT id, k FROM facts ORDER BY k, id
SELECT id, k FROM facts ORDER BY k DESC, id
SELECT id, k FROM facts ORDER BY k NULLS LAST, id
SELECT id, k FROM facts ORDER BY k DESC NULLS FIRST, id
SELECT id, s FROM facts ORDER BY s, id
SELECT id, f FROM facts WHERE id <> 3 ORDER BY f DESC, id
SELECT id, fl FROM facts ORDER BY fl, id
SELECT f, id FROM facts ORDER BY 1, 2
SELECT id, row_number() OVER (ORDER BY f, id) AS r, f FROM facts ORDER BY f DESC, id
SELECT id, bin FROM facts ORDER BY bin, id
SELECT id, ok FROM facts ORDER BY ok DESC, 1
SELECT id, d FROM facts ORDER BY d DESC LIMIT 3
SELECT id, day FROM facts ORDER BY 2, 1 LIMIT 2 OFFSET 3
SELECT id FROM facts WHERE id > 0 ORDER BY id + 1 DESC
SELECT id + 1, id - k, k * 2, -id, id % 3, id DIV 2, small + small FROM facts WHERE id < 5
SELECT id / 2 AS half, k / id AS q, -7 DIV 2 AS a, -7 % 3 AS b, 7 % -3 AS c FROM facts ORDER BY id
SELECT d + price AS a, d - price AS b, price * price AS c, d * 2 AS e, d + 1 AS g, id + price AS h, -d AS i FROM facts ORDER BY id
SELECT price + 1 AS a, price * 10 AS b, 1.5 + 2 AS c, 0.05 * 2 AS d, id * 1.5 AS e FROM facts ORDER BY id
SELECT f + 1 AS a, f * 2 AS b, f - id AS c, f / 2 AS d FROM facts ORDER BY id
SELECT id FROM facts WHERE k = 10 AND (word = 'x' OR word = 'y')
SELECT id FROM facts WHERE NOT (k = 10)
SELECT id FROM facts WHERE k <> 10
SELECT id FROM facts WHERE k != 10 OR k IS NULL
SELECT id FROM facts WHERE k <=> NULL
SELECT id FROM facts WHERE s IS NOT NULL
SELECT id FROM facts WHERE s < 'b'
SELECT id FROM facts WHERE s >= 'zz'
SELECT id FROM facts WHERE k IN (10, 3, NULL)
SELECT id FROM facts WHERE k NOT IN (10, 3)
SELECT id FROM facts WHERE word IN ('x', 'z')
SELECT id FROM facts WHERE id BETWEEN 2 AND 4
SELECT id FROM facts WHERE id NOT BETWEEN 2 AND 4
SELECT id FROM facts WHERE price BETWEEN 0 AND 10
SELECT id FROM facts WHERE price > 2.5
SELECT id FROM facts WHERE d = 1.5
SELECT id FROM facts WHERE f > 1
SELECT id FROM facts WHERE f = 0
SELECT id FROM facts WHERE f = f
SELECT id FROM facts WHERE f > 0.5
SELECT id FROM facts WHERE k > id
SELECT id FROM facts WHERE s LIKE 'a%'
SELECT id FROM facts WHERE s LIKE '%ße'
SELECT id FROM facts WHERE s NOT LIKE '_l%'
SELECT id FROM facts WHERE s LIKE ''
SELECT id FROM facts WHERE day = '2026-03-01'
SELECT id FROM facts WHERE day >= DATE'2026-01-01' AND day < DATE '2027-01-01'
SELECT id FROM facts WHERE t >= '2026-03-01'
SELECT id FROM facts WHERE t > '2026-03-01 08:00:00'
SELECT id FROM facts WHERE t = TIMESTAMP'2026-03-01 23:59:59.999999'
SELECT id FROM facts WHERE day IN ('2026-03-01', '2025-12-31')
SELECT id FROM facts WHERE ok
SELECT id FROM facts WHERE NOT ok
SELECT id FROM facts WHERE ok = true
SELECT id FROM facts WHERE ar IS NULL
SELECT id FROM facts WHERE st.b.c = 'q'
SELECT word, count(*) FROM facts GROUP BY word
SELECT word AS w, count(*) AS n FROM facts GROUP BY w ORDER BY n DESC, w
SELECT Word, sum(id), min(id), max(k), avg(id) FROM facts GROUP BY 1 ORDER BY 1
SELECT word, sum(k) AS a FROM facts WHERE id <> 5 GROUP BY word HAVING sum(k) > 0 ORDER BY word
SELECT word, count(*) AS c FROM facts GROUP BY word HAVING c > 1 ORDER BY count(*) DESC, word
SELECT sum(price), sum(d), min(price), max(d) FROM facts
SELECT sum(id), avg(small), min(s), max(s), min(day), max(t), max(n), min(ok) FROM facts
SELECT sum(id) AS a, avg(id) AS b, count(id) AS c, max(s) AS d FROM facts WHERE id > 100
SELECT min(f) AS a, max(f) AS b, max(fl) AS c FROM facts
SELECT count(*) FILTER (WHERE ok) AS a, sum(id) FILTER (WHERE word = 'x') AS b, avg(id) FILTER (WHERE id > 3) AS c FROM facts
SELECT count_if(ok), count_if(id > 3), bool_and(ok), bool_or(ok) FROM facts
SELECT count(k, s) AS n FROM facts
SELECT count(DISTINCT k) AS a, count(DISTINCT upper(word)) AS b FROM facts
SELECT year(day) AS y, month(day), day(t), count(*) AS n FROM facts GROUP BY year(day), month(day), day(t) ORDER BY y, n, 2, 3
SELECT date_trunc('month', t) AS m, count(*) AS n FROM facts GROUP BY 1 ORDER BY m
SELECT date_trunc('MONTH', day) AS a, date_trunc('week', t) AS b, date_trunc('hour', t) AS c, date_trunc('year', t) AS d FROM facts ORDER BY id
SELECT id % 2 AS odd, count(*) AS n FROM facts GROUP BY id % 2 ORDER BY odd
SELECT CASE WHEN id > 3 THEN 'big' ELSE 'small' END AS size, count(*) AS n FROM facts GROUP BY size ORDER BY size
SELECT DISTINCT word FROM facts
SELECT DISTINCT word, ok FROM facts ORDER BY word, ok
SELECT upper(word), lower(word), length(s), trim(s), ltrim(s), rtrim(s) FROM facts
SELECT substring(s, 1, 3), substring(s, 2), substr(s, 3, 10) FROM facts
SELECT concat(word, '-', s), word || '/' || s AS j FROM facts
SELECT coalesce(k, 0), coalesce(s, word, 'none'), nvl(word, 'no'), ifnull(k, id), nullif(word, 'x'), coalesce(price, 0) FROM facts
SELECT if(id > 3, 'a', 'b') AS a, CASE word WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS b, CASE WHEN ok THEN id ELSE k END AS c FROM facts
SELECT CASE WHEN id > 3 THEN id END, CASE WHEN ok THEN 'a' ELSE s END FROM facts
SELECT greatest(id, k), least(id, small, 3), abs(id - 5), abs(price) FROM facts
SELECT round(avg(id)) AS a, round(avg(id), 2) AS b, word FROM facts GROUP BY word ORDER BY 3
SELECT round(f, 2) AS a, round(f) AS b, round(id), round(f, 0) FROM facts WHERE id IN (1, 3, 6, 7)
SELECT year(t), quarter(day), month(n), day(day), dayofmonth(day), dayofyear(t), dayofweek(day), hour(t), minute(n), second(t) FROM facts
SELECT date_add(day, 30) AS a, date_sub(day, 1) AS b, datediff(day, DATE'2026-01-01') AS e, date_diff(t, day) AS c FROM facts WHERE id <> 6
SELECT to_date(t) AS a, date(t) AS b, to_date('2026-01-31') AS c, CAST(day AS TIMESTAMP) AS d, CAST(t AS DATE) AS e FROM facts
SELECT CAST(id AS STRING), CAST(ok AS STRING), CAST(day AS STRING), CAST(t AS STRING), CAST(n AS STRING), CAST(price AS STRING) FROM facts
SELECT CAST(id AS BIGINT), CAST(id AS DECIMAL(10,2)), CAST(d AS DECIMAL(11,1)), CAST(id AS DOUBLE), CAST(ok AS INT) FROM facts
SELECT CAST(f AS INT) AS i, CAST(price AS DOUBLE) AS p, TRY_CAST(k AS INT) AS j, CAST(num AS INT) AS n FROM facts WHERE id = 1
SELECT CAST(num AS DATE) AS a FROM facts WHERE id = 7
SELECT CAST('2026-01-01 10:00:00' AS TIMESTAMP) AS a, CAST('2026-01-01' AS DATE) AS b, CAST('12' AS BIGINT) AS c, 12L AS d FROM facts LIMIT 1
SELECT 1, 'x', true, 1.5, -1, 3000000000 FROM facts WHERE id = 1
SELECT 1 AS one
SELECT id = 1, id <> 1, id > 1, s IS NULL, s IS NOT NULL, NOT ok, id IN (1, 2), id BETWEEN 1 AND 2, s LIKE 'a%', ok AND ok FROM facts
SELECT a.id, b.id AS other FROM facts a JOIN facts b ON a.id = b.id + 1 ORDER BY 1
SELECT a.id, b.k FROM facts a LEFT JOIN facts b ON a.k = b.k AND b.id > 1 ORDER BY a.id, b.k
SELECT a.id, b.id AS j FROM facts a FULL OUTER JOIN facts b ON a.id = b.small ORDER BY 1, 2
SELECT a.id FROM facts a LEFT SEMI JOIN facts b ON a.k = b.k
SELECT a.id FROM facts a LEFT ANTI JOIN facts b ON a.id = b.small
SELECT count(*) FROM facts a CROSS JOIN facts b
SELECT count(*) AS n FROM facts a, facts b WHERE a.id = b.id
SELECT a.*, p.p FROM facts a JOIN parts p ON p.id = a.id ORDER BY a.id
SELECT count(*) AS n FROM facts a JOIN facts b ON a.f = b.f
SELECT * FROM parts ORDER BY id
SELECT p, count(*) AS n FROM parts GROUP BY p ORDER BY p
SELECT id FROM parts WHERE q = '2026-01-01'
SELECT count(*) FROM parts WHERE p IS NULL
SELECT * FROM deleted ORDER BY id
SELECT count(*) FROM deleted
SELECT * FROM mapped ORDER BY `odd name`
SELECT count(`odd name`) AS n FROM mapped
SELECT * FROM grown ORDER BY id
SELECT extra, count(*) AS n FROM grown GROUP BY extra ORDER BY extra
SELECT st.y AS y, st.x AS x FROM grown ORDER BY id
SELECT * FROM empty
SELECT count(*), sum(id) FROM empty
SELECT id FROM variants
SELECT * FROM (SELECT id, k FROM facts WHERE id > 2) q ORDER BY q.id
SELECT n FROM (SELECT word, count(*) AS n FROM facts GROUP BY word) ORDER BY n
WITH a AS (SELECT id, k FROM facts), b AS (SELECT id FROM a WHERE k = 10) SELECT a.id FROM a JOIN b ON a.id = b.id ORDER BY 1
WITH facts AS (SELECT 1 AS x) SELECT * FROM facts
SELECT id FROM facts WHERE id IN (SELECT id FROM parts)
SELECT id FROM facts WHERE k NOT IN (SELECT k FROM facts WHERE k > 5)
SELECT id FROM facts WHERE id = (SELECT max(id) FROM facts)
SELECT id, (SELECT count(*) FROM parts) AS n FROM facts
SELECT id FROM facts UNION ALL SELECT k FROM facts
SELECT word FROM facts UNION SELECT p FROM parts ORDER BY word
SELECT id FROM facts EXCEPT SELECT id FROM parts
SELECT id FROM facts INTERSECT SELECT id FROM parts ORDER BY 1 DESC
(SELECT id FROM facts ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM facts ORDER BY id DESC LIMIT 1) ORDER BY id
SELECT id, row_number() OVER (ORDER BY id DESC) AS r, rank() OVER (PARTITION BY word ORDER BY ok) AS k FROM facts ORDER BY id
SELECT id, lag(id) OVER (ORDER BY id) AS a, sum(id) OVER (PARTITION BY word ORDER BY id) AS b, count(*) OVER () AS c FROM facts ORDER BY id
SELECT id, max(k) OVER (PARTITION BY word) AS m, dense_rank() OVER (ORDER BY word DESC) AS d FROM facts ORDER BY id
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY word ORDER BY id) AS r FROM facts) WHERE r = 1 ORDER BY id
SELECT size(ar) AS n, ar, m, st FROM facts ORDER BY id
SELECT id FROM facts LIMIT 0
SELECT id + small * 2 - id % 3 AS a, -id * 2 + 1 AS b, id - small - 1 AS c, id * 2 % 3 AS d, 8 DIV 3 * 2 AS e, 7 - 2 DIV 2 AS f FROM facts
SELECT id FROM facts WHERE NOT id = 1 AND k > 2 OR ok
SELECT id FROM facts WHERE id BETWEEN 1 AND 3 AND k > 0 OR NOT ok IS NULL AND id + 1 > 5
SELECT id FROM facts WHERE id IN (1, 2) OR s LIKE 'z%' AND NOT word = 'x'
SELECT 'a' || word || 'b' AS j, sum(CAST(id AS BIGINT)) FROM facts GROUP BY word
SELECT upper(trim(word)), coalesce(CAST(id AS STRING), 'x'), abs(id) + 1, length(s) > 2 FROM facts
SELECT d AS id, id AS d FROM facts ORDER BY d
SELECT id, id FROM facts ORDER BY 1
SELECT published.n FROM published
SELECT id FROM live.facts -- a comment
""".strip().splitlines()
"""DuckDB answers each of them."""

LEFT_TO_SPARK = """
SELECT sum(f) FROM facts
SELECT avg(price) FROM facts
SELECT d / price AS q FROM facts WHERE id = 1
SELECT id FROM facts WHERE s RLIKE 'a.*'
SELECT id FROM facts WHERE id = '1'
SELECT CAST(f AS STRING) AS t FROM facts
SELECT DISTINCT f FROM facts
SELECT f, count(*) AS n FROM facts GROUP BY f
SELECT upper(s) AS u FROM facts
SELECT ar[0] AS x FROM facts WHERE id = 1
SELECT m['k'] AS x FROM facts WHERE id = 1
SELECT explode(ar) AS x FROM facts
SELECT v FROM variants
SELECT id FROM facts TABLESAMPLE (100 PERCENT)
SELECT id AS a, a + 1 AS b FROM facts
SELECT CAST(num AS INT) AS n FROM facts WHERE id = 3
SELECT first(id) AS f FROM facts WHERE id = 1
SELECT current_date() IS NULL AS x
SELECT id FROM facts VERSION AS OF 1
SELECT * FROM facts NATURAL JOIN parts
SELECT * FROM facts JOIN parts USING (id)
SELECT word, count(*) AS n FROM facts GROUP BY ROLLUP (word)
SELECT date_trunc('week', n) AS b FROM facts
SELECT collect_set(word) IS NULL AS c FROM facts
SELECT id FROM facts WHERE EXISTS (SELECT 1 FROM parts WHERE parts.id = facts.id)
SELECT 'a' 'b' AS c
SELECT sum(k) AS n FROM facts WHERE id < 0 OR 1.0 / 3 > 0
""".strip().splitlines()
"""Spark answers each of them."""

NAMES_OF_SPARK = """
SELECT id AS a, a + 1 AS b, b * 2 AS c FROM facts WHERE id = 1
SELECT facts.st.a, st.b.c, shop.facts.st.b.c AS e, main.shop.facts.id FROM facts
SELECT f.st.a FROM shop.facts f WHERE f.st.b IS NOT NULL
SELECT f.st.* FROM facts f
SELECT st.* FROM facts
SELECT * EXCEPT (id) FROM facts
SELECT x.i FROM (SELECT * EXCEPT (k), id AS i FROM facts) x
SELECT transform(ar, (x, i) -> x + i + id) AS t FROM facts
SELECT filter(ar, x -> x > id), aggregate(ar, 0, (total, x) -> total + x, total -> total * 2) FROM facts
SELECT transform(array(st), y -> y.b.c) AS t FROM facts
SELECT transform(ar, x -> transform(ar, y -> x + y + id)) AS t FROM facts
SELECT map_filter(m, (key, value) -> value > 0) AS f FROM facts
SELECT e.x, facts.id FROM facts LATERAL VIEW explode(ar) e AS x
SELECT id, q, x FROM facts, LATERAL (SELECT facts.id + 1 AS q), LATERAL explode(ar) AS l(x)
SELECT posexplode(ar) AS (p, x) FROM facts
SELECT explode(m) FROM facts
SELECT col + 1 AS n FROM (SELECT explode(ar) FROM facts)
SELECT `count(1)` + 1 AS n FROM (SELECT count(1) FROM facts)
SELECT id FROM facts a WHERE EXISTS (SELECT 1 FROM parts WHERE parts.id = a.id AND k = 10)
SELECT id, (SELECT max(p) FROM parts p WHERE p.id = facts.id) AS m FROM facts
SELECT a.id FROM facts a WHERE a.id IN (SELECT b.id FROM parts b WHERE b.p = a.s OR s IS NULL)
WITH a AS (SELECT id AS n FROM facts), b (m) AS (SELECT n + 1 FROM a) SELECT m, a.n FROM b JOIN a ON m = n
WITH a AS (WITH b AS (SELECT 1 AS one) SELECT one FROM b) SELECT one FROM a
WITH facts AS (SELECT 1 AS one) SELECT one, facts.one FROM facts
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r
SELECT n FROM (WITH w AS (SELECT id AS n FROM facts) SELECT * FROM w) ORDER BY n
SELECT current_date, current_timestamp, current_user FROM facts
SELECT current_date AS d, user, session_user
SELECT date_add(DAY, 1, day) AS a, timestampadd(HOUR, 2, t) AS b, datediff(MONTH, day, day) AS c, timestampdiff(DAY, t, t) AS d FROM facts
SELECT extract(YEAR FROM day) AS y, date_part('month', day) AS m, trim(BOTH 'x' FROM s) AS t, position('a' IN s) AS p FROM facts
SELECT substring(s FROM 1 FOR 2) AS a, overlay(s PLACING 'x' FROM 1) AS b FROM facts
SELECT mask(s, upperChar => 'Q', lowerChar => 'q') AS m FROM facts
SELECT timestamp_ltz'2026-01-01' AS a, timestamp_ntz'2026-01-01' AS b, date'2026-01-01' AS c, X'01' AS d, INTERVAL '1' DAY AS e
SELECT id FROM facts ORDER BY ALL
SELECT word, count(*) AS n FROM facts GROUP BY ALL
SELECT word AS w, count(*) AS many FROM facts GROUP BY w HAVING many > 0 ORDER BY w, many
SELECT word, count(*) AS n, grouping__id FROM facts GROUP BY word, k WITH ROLLUP
SELECT word, k, grouping(word) AS g FROM facts GROUP BY GROUPING SETS ((word), (k))
SELECT sum(id) OVER w AS s FROM facts WINDOW w AS (PARTITION BY word ORDER BY id)
SELECT id, row_number() OVER (PARTITION BY word ORDER BY id) AS n FROM facts QUALIFY n = 1
SELECT sum(id) FILTER (WHERE word = 'x') AS s FROM facts
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS p, listagg(s, ',') WITHIN GROUP (ORDER BY id) AS l FROM facts
SELECT * FROM (SELECT word, id FROM facts) PIVOT (sum(id) AS total FOR word IN ('x' AS ex, 'y' AS why))
SELECT ex, why FROM (SELECT word, id FROM facts) PIVOT (sum(id) FOR word IN ('x' AS ex, 'y' AS why))
SELECT id, name, val FROM (SELECT id, CAST(k AS STRING) AS k, s FROM facts) UNPIVOT (val FOR name IN (k, s))
SELECT a, b FROM VALUES (1, 2), (3, 4) AS t(a, b)
SELECT col1 FROM VALUES (1), (2)
SELECT id FROM range(3)
SELECT t.id FROM range(3) AS t
SELECT v.x FROM (VALUES (1)) AS v(x)
VALUES (1, 'a')
TABLE facts
FROM facts SELECT id WHERE k = 10
FROM facts |> WHERE id > 1 |> SELECT id AS n |> WHERE n < 5
FROM facts |> AGGREGATE count(*) AS n GROUP BY word |> ORDER BY n
FROM facts |> EXTEND id + 1 AS next |> SET id = next |> SELECT id, next
SELECT id, p FROM facts JOIN parts USING (id)
SELECT facts.id, parts.id, p FROM (facts JOIN parts USING (id))
SELECT id, p FROM facts NATURAL JOIN parts
SELECT f.id FROM facts f LEFT SEMI JOIN parts p ON f.id = p.id
SELECT a.id, b.id FROM facts a, parts b WHERE a.id = b.id
SELECT a.id FROM facts a CROSS JOIN (SELECT id AS other FROM parts) b WHERE a.id = b.other
SELECT id FROM facts UNION ALL SELECT id FROM parts ORDER BY id
(SELECT id AS n FROM facts) UNION (SELECT id FROM parts) ORDER BY n LIMIT 2
SELECT id FROM facts TABLESAMPLE (100 PERCENT) s
SELECT id FROM facts VERSION AS OF 1
SELECT /*+ BROADCAST(parts) */ facts.id FROM facts JOIN parts ON facts.id = parts.id
SELECT struct(id AS q, s).q AS x, named_struct('z', id).z AS y FROM facts
SELECT ar[0], m['k'], st['a'], ar[id - 1] FROM facts WHERE id = 1
SELECT CASE word WHEN 'x' THEN id ELSE k END AS c FROM facts
SELECT CAST(id AS STRING), id::bigint, try_cast(s AS INT) FROM facts
SELECT `ID`, `facts`.`s` FROM `main`.`shop`.`facts`
SELECT `odd name` FROM mapped
SELECT id FROM live.facts
SELECT LIVE.facts.id FROM LIVE.facts
SELECT n FROM published
SELECT id FROM identifier('facts')
SELECT identifier('id') AS x FROM facts
SELECT t.x, count(*) AS n FROM (SELECT inline(array(st)) AS (x, y) FROM facts) t GROUP BY t.x
SELECT any_value(id) AS a, max_by(s, id) AS m FROM facts
SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'
SELECT version FROM facts, (SELECT 1 AS version)
SELECT id FROM facts DISTRIBUTE BY word SORT BY id
SELECT DISTINCT word FROM facts ORDER BY word
SELECT id, s FROM facts WHERE (id, word) IN (SELECT id, p FROM parts)
SELECT id FROM facts o WHERE o.id = (SELECT max(g.id) FROM facts g WHERE g.word = o.word)
SELECT if(ok, id, k) AS i, nvl(k, id) AS n, coalesce(word, s) AS c FROM facts
SELECT id, v:a::int AS a FROM variants
SELECT id FROM facts LIMIT ALL
SELECT date, time FROM (SELECT day AS date, t AS time FROM facts)
""".strip().splitlines()
"""Names that are not columns of a stored table, or are not found in an ordinary way: none of these queries is an unknown name."""

REFUSED = """
SELECT 1 / 0
SELECT id / (id - 1) AS q FROM facts
SELECT id DIV 0 FROM facts
SELECT id % (id - id) AS q FROM facts
SELECT CAST(k AS INT) AS i FROM facts
SELECT CAST(num AS INT) AS n FROM facts
SELECT CAST(f AS INT) AS i FROM facts
SELECT 2147483647 + 1
SELECT k * 9007199254740993 AS x FROM facts
SELECT CAST(d AS DECIMAL(4,2)) AS x FROM facts
SELECT small * 30000 * 30000 * 2 AS x FROM facts
SELECT nope FROM facts
SELECT id FROM facts GROUP BY word
SELECT word, id FROM facts GROUP BY 1
SELECT sum(id) FROM facts WHERE sum(id) > 1
SELECT (SELECT id FROM facts) AS x
SELECT id FROM facts a JOIN facts b ON a.id = b.id
SELECT id FROM facts WHERE id
SELECT id FROM facts ORDER BY 7
SELECT id FROM facts WHERE word = 1
SELECT id, FROM facts
SELECT id FROM facts UNION ALL SELECT id, k FROM facts
SELECT abs(-2147483648 - 0) AS a FROM facts WHERE id < small * 40000 * 40000
SELECT DISTINCT word FROM facts ORDER BY id
SELECT nosuch(id) FROM facts
""".strip().splitlines()
"""Spark raises an error for each of them: DuckDB must not answer."""
