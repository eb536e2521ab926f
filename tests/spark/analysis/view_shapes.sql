-- Queries of views and what is known of them: how they are followed, by which columns, what is put together how; then each table.
-- `country?1`: a key while table 1 does not change. `*`: a join fills the table with NULL. Names behind a table: its columns that are keys
-- (`id=other`: the key `other`), ranges (`at~hour`), and the numbers of the tables that it is joined with (`+1`). See test_view_shapes.py.

-- # row by row

SELECT id, upper(kind) AS kind FROM orders WHERE amount > 0
--> linear, by id | orders id

SELECT id AS number, day FROM orders ORDER BY id
--> linear, by number day | orders day id=number

SELECT id, price, parts, code FROM orders
--> linear, by id | orders id

SELECT upper(kind) AS kind FROM orders
--> linear, by kind | orders

SELECT id, explode(tags) AS tag FROM orders
--> linear, by id | orders id

SELECT o.id, tag FROM orders o LATERAL VIEW OUTER explode(o.tags) t AS tag
--> linear, by id | orders id

SELECT id, day FROM orders UNION ALL SELECT id, day FROM orders_2
--> linear, by id day | orders day id | orders_2 day id

SELECT id FROM orders WHERE kind = 'a' UNION ALL SELECT id FROM orders WHERE kind = 'b'
--> linear, by id | orders id | orders id

WITH recent AS (SELECT id, day FROM orders WHERE day > DATE '2024-01-01') SELECT id FROM recent
--> linear, by id | orders id

SELECT /*+ REPARTITION(3) */ id FROM orders
--> linear, by id | orders id

SELECT id, item, worth FROM (SELECT id, day, since FROM orders JOIN customers USING (customer)) UNPIVOT (worth FOR item IN (day,
since))
--> linear, by id item worth | orders +1 | customers +0

-- # joins of rows

SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.customer
--> linear, by id name | orders id +1 | customers name +0

SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer
--> linear, by id | orders id +1 | customers* +0

SELECT c.customer, o.id FROM orders o JOIN customers c ON o.customer = c.customer
--> linear, by customer id | orders customer id +1 | customers customer +0

SELECT o.customer, o.id FROM orders o LEFT JOIN customers c ON o.customer = c.customer
--> linear, by customer id | orders customer id +1 | customers* customer +0

SELECT o.customer, o.id FROM orders o, customers c WHERE o.customer = c.customer
--> linear, by customer id | orders customer id +1 | customers customer +0

SELECT o.id FROM orders o JOIN customers c ON o.day BETWEEN c.since AND c.since + INTERVAL 1 DAY
--> linear, by id | orders id +1 | customers +0

SELECT a.id, b.id AS other FROM orders a JOIN orders_2 b ON a.customer = b.customer
--> linear, by id other | orders id +1 | orders_2 id=other +0

-- # groups

SELECT day, count(*) AS n, sum(id) AS s, sum(amount) AS a, min(kind) AS k, max(at) AS m, bool_and(ok) AS e, bool_or(ok) AS o FROM
orders GROUP BY day
--> groups, by day, merging n=SUM s=SUM a=SUM k=MIN m=MAX e=EVERY o=SOME | orders day

SELECT kind, max(CAST(amount AS DOUBLE)) AS most, min(CAST(amount AS FLOAT)) AS least FROM orders GROUP BY kind
--> groups, by kind, merging most=MAX least=MIN | orders kind

SELECT kind, count(id) FILTER (WHERE ok) AS n, count_if(ok) AS c FROM orders GROUP BY kind ORDER BY n DESC
--> groups, by kind, merging n=SUM c=SUM | orders kind

SELECT n AS number, kind FROM (SELECT kind, count(*) AS n FROM orders GROUP BY kind)
--> groups, by kind, merging number=SUM | orders kind

WITH t AS (SELECT kind, count(*) AS n FROM orders GROUP BY kind) SELECT n, kind AS k FROM t
--> groups, by k, merging n=SUM | orders kind=k

SELECT kind FROM orders GROUP BY kind
--> groups, by kind, merging nothing | orders kind

SELECT day, sum(price) AS s FROM orders GROUP BY day
--> groups, by day | orders day

SELECT day, avg(amount) AS s FROM orders GROUP BY day
--> groups, by day | orders day

SELECT day, count(DISTINCT customer) AS n FROM orders GROUP BY day
--> groups, by day | orders day

SELECT day, sum(amount) * 2 AS s FROM orders GROUP BY day
--> groups, by day | orders day

SELECT day, percentile(price, 0.5) AS p FROM orders GROUP BY day
--> groups, by day | orders day

SELECT count(*) AS n FROM orders GROUP BY day
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_NOT_TOP_NODE

SELECT day, count(*) AS n FROM orders GROUP BY day, kind
--> groups, by day | orders day

SELECT day, count(*) AS n FROM orders GROUP BY day HAVING count(*) > 1
--> groups, by day | orders day

SELECT count(*) AS n, max(day) AS last FROM orders
--> groups, by , merging n=SUM last=MAX | orders

SELECT avg(price) AS p FROM orders
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_NOT_TOP_NODE

SELECT date_trunc('HOUR', at) AS hour, count(*) AS n FROM orders GROUP BY 1
--> groups, by hour, merging n=SUM | orders at~hour:date_trunc:hour

SELECT to_date(at) AS d, count(*) AS n FROM orders GROUP BY to_date(at)
--> groups, by d, merging n=SUM | orders at~d:date:day

SELECT CAST(at AS DATE) AS d, count(*) AS n FROM orders GROUP BY CAST(at AS DATE)
--> groups, by d, merging n=SUM | orders at~d:date:day

SELECT date_trunc('month', day) AS m, count(*) AS n FROM orders GROUP BY 1
--> groups, by m, merging n=SUM | orders day~m:date_trunc:month

SELECT trunc(day, 'MM') AS m, count(*) AS n FROM orders GROUP BY 1
--> groups, by m, merging n=SUM | orders day~m:date_trunc:month

SELECT to_date(kind) AS d, count(*) AS n FROM orders GROUP BY 1
--> groups, by d, merging n=SUM | orders

SELECT upper(kind) AS k, count(*) AS n FROM orders GROUP BY kind
--> groups, by k | orders

SELECT upper(kind) AS k, count(*) AS n FROM orders GROUP BY upper(kind)
--> groups, by k, merging n=SUM | orders

SELECT window(at, '1 hour') AS w, count(*) AS n FROM orders GROUP BY window(at, '1 hour')
--> groups, by w, merging n=SUM | orders

SELECT w.start AS start, n FROM (SELECT window(at, '1 hour') AS w, count(*) AS n FROM orders GROUP BY 1)
--> groups, by start | orders

SELECT day, kind, count(*) AS n FROM orders GROUP BY ROLLUP (day, kind)
--> groups, by day kind | orders

SELECT * FROM (SELECT day, kind, id FROM orders) PIVOT (count(id) FOR kind IN ('a', 'b'))
--> groups, by day | orders day

SELECT price, count(*) AS n FROM orders GROUP BY price
--> MAP_TYPE_NOT_SUPPORTED

SELECT code, count(*) AS n FROM orders GROUP BY code
--> MAP_TYPE_NOT_SUPPORTED

SELECT day, code, count(*) AS n FROM orders GROUP BY day, code
--> groups, by day | orders day

SELECT day, sort_array(collect_set(kind)) AS kinds FROM orders GROUP BY day
--> groups, by day | orders day

SELECT day, max_by(kind, at) AS newest FROM orders GROUP BY day
--> groups, by day | orders day

-- # distinct

SELECT DISTINCT customer, day FROM orders
--> groups, by customer day | orders customer day

SELECT day FROM orders UNION SELECT since FROM customers
--> groups, by day | orders day | customers since=day

SELECT kind, count(*) AS n FROM (SELECT DISTINCT kind, customer FROM orders) GROUP BY kind
--> groups, by kind | orders kind

-- # windows

SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY at) AS rn FROM orders
--> windows, by customer | orders customer

SELECT * FROM (SELECT id, kind, customer, row_number() OVER (PARTITION BY customer ORDER BY at DESC) AS rn FROM orders) WHERE rn =
1 AND kind = 'a'
--> windows, by customer | orders customer

SELECT day, customer, sum(amount) OVER (PARTITION BY customer, day) AS s, count(*) OVER (PARTITION BY customer) AS n FROM orders
--> windows, by customer | orders customer

SELECT customer, count(*) OVER (PARTITION BY customer) AS a, count(*) OVER (PARTITION BY kind) AS b, kind FROM orders
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_NOT_TOP_NODE

SELECT day, kind, n, rank() OVER (PARTITION BY day ORDER BY n DESC) AS place FROM (SELECT day, kind, count(*) AS n FROM orders
GROUP BY day, kind)
--> groups, by day | orders day

-- # several

SELECT customer, max(n) AS n FROM (SELECT customer, day, count(*) AS n FROM orders GROUP BY customer, day) GROUP BY customer
--> groups, by customer | orders customer

SELECT n, count(*) AS days FROM (SELECT day, count(*) AS n FROM orders GROUP BY day) GROUP BY n
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_NOT_TOP_NODE

SELECT c.country, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.customer GROUP BY c.country
--> groups, by country, merging n=SUM | orders +1 | customers country +0

SELECT c.country, o.day, count(*) AS n FROM orders o LEFT JOIN customers c ON o.customer = c.customer GROUP BY c.country, o.day
--> groups, by country?1 day, merging n=SUM | orders day +1 | customers* +0

SELECT t.customer, t.day, c.name, t.n FROM (SELECT customer, day, count(*) AS n FROM orders GROUP BY customer, day) t LEFT JOIN
customers c ON t.customer = c.customer
--> groups, by customer day name?1 | orders customer day +1 | customers* customer +0

SELECT v.channel, count(*) AS n FROM visits v LEFT JOIN (SELECT customer, max(day) AS last FROM orders GROUP BY customer) t ON
v.visitor = t.customer GROUP BY v.channel
--> groups, by channel | visits channel +1 | orders* +0

SELECT o.customer, o.id FROM orders o JOIN (SELECT customer, max(at) AS at FROM orders_2 GROUP BY customer) l ON o.customer =
l.customer AND o.at = l.at
--> groups, by customer id | orders customer id +1 | orders_2 customer +0

SELECT o.id FROM orders o JOIN (SELECT customer, max(at) AS at FROM orders_2 GROUP BY customer) l ON o.at = l.at
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_NOT_TOP_NODE

SELECT kind, count(*) AS n FROM orders GROUP BY kind UNION ALL SELECT channel, count(*) FROM visits GROUP BY channel
--> groups, by kind | orders kind | visits channel=kind

SELECT kind, 1 AS n FROM orders UNION ALL SELECT channel, count(*) FROM visits GROUP BY channel
--> groups, by kind | orders kind | visits channel=kind

SELECT a.day, a.n, b.m FROM (SELECT day, count(*) AS n FROM orders GROUP BY day) a JOIN (SELECT since, count(*) AS m FROM
customers GROUP BY since) b ON a.day = b.since
--> groups, by day | orders day +1 | customers since=day +0

-- # refused

SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON o.customer = c.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT o.id FROM orders o RIGHT JOIN customers c ON o.customer = c.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT o.id FROM orders o FULL JOIN customers c ON o.customer = c.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT id FROM orders ORDER BY at LIMIT 10
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT id FROM orders WHERE customer IN (SELECT customer FROM customers)
--> PLAN_NOT_INCREMENTALIZABLE SUBQUERY_EXPRESSION

SELECT id, (SELECT max(since) FROM customers) AS last FROM orders
--> PLAN_NOT_INCREMENTALIZABLE SUBQUERY_EXPRESSION

SELECT customer FROM orders INTERSECT SELECT customer FROM customers
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT customer FROM orders EXCEPT SELECT customer FROM customers
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT id, rank() OVER (ORDER BY amount) AS place FROM orders
--> PLAN_NOT_INCREMENTALIZABLE WINDOW_FUNCTION_WITHOUT_PARTITION_BY

SELECT id FROM orders WHERE day = current_date()
--> PLAN_NOT_DETERMINISTIC TIME_FUNCTION

SELECT id, rand() AS r FROM orders
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT day, first(kind) AS k FROM orders GROUP BY day
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT day, collect_list(kind) AS k FROM orders GROUP BY day
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT day, array_agg(kind) AS k FROM orders GROUP BY day
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT day, percentile_approx(price, 0.5) AS p FROM orders GROUP BY day
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT day, any_value(kind) AS k FROM orders GROUP BY day
--> PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION

SELECT id FROM orders TABLESAMPLE (10 PERCENT)
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT id FROM orders UNION ALL SELECT 1
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT a.id FROM orders a JOIN orders b ON a.id = b.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

WITH t AS (SELECT * FROM orders) SELECT a.id FROM t a JOIN t b ON a.id = b.customer
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT o.id, t.n FROM orders o CROSS JOIN (SELECT count(*) AS n FROM customers) t
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED

SELECT day, histogram_numeric(price, 3) AS h FROM orders GROUP BY day
--> PLAN_NOT_INCREMENTALIZABLE AGGREGATE_WITH_UNSUPPORTED_EXPRESSION

SELECT count(*) AS n, session_window(at, '5 minutes') AS w FROM orders GROUP BY session_window(at, '5 minutes')
--> PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED
