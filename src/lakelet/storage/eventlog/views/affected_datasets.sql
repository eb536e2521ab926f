-- One row per dataset that failed, was stopped or is late, and dataset downstream of it.
WITH failures AS (
  SELECT f.dataset, min(f.ended_at) AS since_at, count(DISTINCT f.update_id) AS failed_updates
  FROM flow_metrics f
  JOIN dataset_health h ON h.dataset = f.dataset
  WHERE f.status IN ('FAILED', 'STOPPED') AND (h.last_completed_at IS NULL OR f.ended_at > h.last_completed_at)
  GROUP BY f.dataset
),
late AS (
  SELECT dataset, min(waiting_since_at) AS since_at
  FROM dataset_sources
  WHERE distance = 1
  GROUP BY dataset
),
causes AS (
  SELECT
    h.dataset,
    h.owner,
    CASE h.last_status WHEN 'FAILED' THEN 'failed' WHEN 'STOPPED' THEN 'stopped' ELSE 'late' END AS problem,
    CASE WHEN h.last_status IN ('FAILED', 'STOPPED') THEN f.since_at ELSE l.since_at END AS since_at,
    coalesce(f.failed_updates, 0) AS failed_updates,
    h.error
  FROM dataset_health h
  LEFT JOIN failures f ON f.dataset = h.dataset
  LEFT JOIN late l ON l.dataset = h.dataset
  WHERE h.last_status IN ('FAILED', 'STOPPED') OR (h.last_status <> 'SKIPPED' AND l.since_at IS NOT NULL)
)
SELECT
  c.dataset AS cause,
  c.owner AS cause_owner,
  c.problem,
  c.since_at,
  c.failed_updates,
  c.error,
  s.dataset,
  h.dataset_type,
  h.owner,
  h.last_status,
  s.distance
FROM causes c
JOIN dataset_sources s ON s.source = c.dataset
LEFT JOIN dataset_health h ON h.dataset = s.dataset
