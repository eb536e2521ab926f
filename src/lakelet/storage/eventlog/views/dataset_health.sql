-- One row per dataset: its latest update in which it took part, and when it was last complete and last got rows.
WITH sinks AS (
  SELECT DISTINCT origin.sink_name AS name
  FROM event_log_raw
  WHERE event_type = 'sink_definition' AND origin.sink_name IS NOT NULL
),
types AS (
  SELECT
    origin.dataset_name AS dataset,
    max_by(get_json_object(details, '$.dataset_definition.dataset_type'), timestamp) AS dataset_type
  FROM event_log_raw
  WHERE event_type = 'dataset_definition'
  GROUP BY origin.dataset_name
),
written AS (
  SELECT
    coalesce(origin.dataset_name, origin.sink_name) AS dataset,
    max(timestamp) AS last_rows_at
  FROM event_log_raw
  WHERE event_type = 'flow_progress'
    AND (coalesce(CAST(get_json_object(details, '$.flow_progress.metrics.num_output_rows') AS BIGINT), 0) > 0
      OR coalesce(CAST(get_json_object(details, '$.flow_progress.metrics.num_upserted_rows') AS BIGINT), 0) > 0
      OR coalesce(CAST(get_json_object(details, '$.flow_progress.metrics.num_deleted_rows') AS BIGINT), 0) > 0)
  GROUP BY coalesce(origin.dataset_name, origin.sink_name)
),
held AS (
  SELECT
    origin.update_id AS update_id,
    origin.dataset_name AS dataset,
    sum(CAST(get_json_object(details, '$.flow_progress.data_quality.quarantined_records') AS BIGINT)) AS quarantined_records
  FROM event_log_raw
  WHERE event_type = 'flow_progress'
  GROUP BY origin.update_id, origin.dataset_name
),
judged AS (
  SELECT update_id, dataset, sum(passed_records) AS passed_records, sum(failed_records) AS failed_records
  FROM expectation_metrics
  GROUP BY update_id, dataset
),
refreshed AS (
  SELECT
    m.update_id,
    m.dataset,
    max(u.started_at) AS update_started_at,
    CASE
      WHEN count_if(m.status = 'FAILED') > 0 THEN 'FAILED'
      WHEN count_if(m.status = 'SKIPPED') > 0 THEN 'SKIPPED'
      WHEN count_if(m.status = 'STOPPED') > 0 THEN 'STOPPED'
      WHEN count_if(m.status IN ('STARTING', 'PLANNING', 'RUNNING')) > 0 THEN 'RUNNING'
      WHEN count_if(m.status = 'QUEUED') > 0 THEN 'QUEUED'
      WHEN count_if(m.status = 'COMPLETED') > 0 THEN 'COMPLETED'
      ELSE max(m.status)
    END AS status,
    max(m.ended_at) AS ended_at,
    sum(coalesce(m.output_rows, 0) + coalesce(m.upserted_rows, 0)) AS output_rows,
    sum(m.dropped_records) AS dropped_records,
    min_by(m.error_message, m.ended_at) FILTER (WHERE m.status = 'FAILED') AS error
  FROM flow_metrics m
  JOIN updates u ON u.update_id = m.update_id
  LEFT ANTI JOIN sinks s ON s.name = m.dataset
  WHERE m.status <> 'EXCLUDED' AND m.dataset IS NOT NULL
  GROUP BY m.update_id, m.dataset
),
numbered AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY dataset ORDER BY update_started_at DESC, update_id) AS age,
    max(CASE WHEN status IN ('COMPLETED', 'IDLE') THEN ended_at END) OVER (PARTITION BY dataset) AS last_completed_at
  FROM refreshed
)
SELECT
  n.dataset,
  t.dataset_type,
  n.update_id AS last_update_id,
  n.status AS last_status,
  n.last_completed_at,
  w.last_rows_at,
  n.output_rows,
  n.dropped_records,
  j.failed_records,
  j.passed_records / nullif(j.passed_records + j.failed_records, 0) AS pass_rate,
  h.quarantined_records,
  n.error
FROM numbered n
LEFT JOIN types t ON t.dataset = n.dataset
LEFT JOIN written w ON w.dataset = n.dataset
LEFT JOIN judged j ON j.update_id = n.update_id AND j.dataset = n.dataset
LEFT JOIN held h ON h.update_id = n.update_id AND h.dataset = n.dataset
WHERE n.age = 1
