-- One row per dataset that fails, rule that rows break and check that does not hold now: since which update, and in how many. A rule is judged by its present text.
WITH measured AS (
  SELECT
    e.*,
    u.started_at,
    max(struct(u.started_at, e.update_id, e.`constraint` AS text, e.action AS action)) OVER (PARTITION BY e.dataset, e.expectation) AS newest
  FROM expectation_metrics e
  JOIN updates u ON u.update_id = e.update_id
),
edited AS (
  SELECT
    *,
    max(CASE WHEN `constraint` <=> newest.text AND action <=> newest.action THEN NULL ELSE started_at END)
      OVER (PARTITION BY dataset, expectation) AS edited_at
  FROM measured
),
points AS (
  SELECT
    'dataset' AS kind,
    f.dataset,
    CAST(NULL AS STRING) AS name,
    f.update_id,
    max(f.ended_at) AS at,
    count_if(f.status = 'FAILED') > 0 AS at_fault,
    CAST(NULL AS BIGINT) AS failed_records,
    max(h.owner) AS owner
  FROM flow_metrics f
  LEFT JOIN dataset_health h ON h.dataset = f.dataset
  WHERE f.status <> 'EXCLUDED' AND f.dataset IS NOT NULL
  GROUP BY f.dataset, f.update_id
  HAVING count_if(f.status = 'FAILED') > 0 OR count_if(f.status NOT IN ('COMPLETED', 'IDLE')) = 0
  UNION ALL
  SELECT
    'rule' AS kind,
    dataset,
    expectation AS name,
    update_id,
    max(updated_at) AS at,
    sum(failed_records) > 0 AS at_fault,
    sum(failed_records) AS failed_records,
    max(owner) AS owner
  FROM edited
  WHERE edited_at IS NULL OR started_at > edited_at
  GROUP BY dataset, expectation, update_id
  HAVING sum(passed_records + failed_records) > 0
  UNION ALL
  SELECT
    'check' AS kind,
    dataset,
    check_name AS name,
    update_id,
    checked_at AS at,
    NOT success AS at_fault,
    CAST(NULL AS BIGINT) AS failed_records,
    owner
  FROM table_checks
  WHERE success IS NOT NULL
),
numbered AS (
  SELECT
    p.*,
    u.started_at,
    row_number() OVER (PARTITION BY p.kind, p.dataset, p.name ORDER BY u.started_at, p.update_id, p.at) AS number
  FROM points p
  JOIN updates u ON u.update_id = p.update_id
),
broken AS (
  SELECT
    *,
    max(CASE WHEN at_fault THEN 0 ELSE number END) OVER (PARTITION BY kind, dataset, name) AS last_good
  FROM numbered
)
SELECT
  kind,
  dataset,
  name,
  min_by(update_id, number) AS since_update_id,
  min(started_at) AS since_at,
  count(DISTINCT update_id) AS failed_updates,
  (unix_micros(max(started_at)) - unix_micros(min(started_at))) / 1000000 AS duration_s,
  max_by(update_id, number) AS last_update_id,
  max_by(failed_records, number) AS failed_records,
  max_by(owner, number) AS owner
FROM broken
WHERE number > last_good
GROUP BY kind, dataset, name
