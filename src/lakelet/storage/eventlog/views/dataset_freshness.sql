-- One row per dataset that reads others: how old it is against its sources, and what waits.
WITH sources AS (
  SELECT
    *,
    CASE WHEN waiting_since_at IS NOT NULL
      THEN (unix_micros(source_changed_at) - unix_micros(coalesce(contains_at, waiting_since_at))) / 1000000 END AS behind
  FROM dataset_sources
),
summed AS (
  SELECT
    dataset,
    max(source_changed_at) AS sources_changed_at,
    max(contains_at) AS contains_at,
    min(waiting_since_at) AS behind_since_at,
    coalesce(max(behind), 0) AS lag_s,
    coalesce(sum(waiting_rows) FILTER (WHERE is_first), 0) AS waiting_rows,
    array_join(array_sort(collect_set(CASE WHEN waiting_since_at IS NOT NULL THEN source END)), ', ') AS waiting_for
  FROM sources
  GROUP BY dataset
)
SELECT
  s.dataset,
  h.dataset_type,
  h.owner,
  h.last_status,
  h.last_completed_at,
  s.sources_changed_at,
  s.contains_at,
  s.behind_since_at,
  s.lag_s,
  s.waiting_rows,
  nullif(s.waiting_for, '') AS waiting_for
FROM summed s
LEFT JOIN dataset_health h ON h.dataset = s.dataset
