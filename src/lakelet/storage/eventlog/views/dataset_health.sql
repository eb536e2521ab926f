-- One row per dataset: its latest update in which it took part, and when it was last complete and last got rows.
WITH started AS (
  SELECT origin.update_id AS update_id, min(timestamp) AS update_started_at
  FROM event_log_raw
  WHERE event_type = 'create_update'
  GROUP BY origin.update_id
),
types AS (
  SELECT
    origin.dataset_name AS dataset,
    max_by(get_json_object(details, '$.dataset_definition.dataset_type'), timestamp) AS dataset_type
  FROM event_log_raw
  WHERE event_type = 'dataset_definition'
  GROUP BY origin.dataset_name
),
events AS (
  SELECT
    origin.update_id AS update_id,
    origin.dataset_name AS dataset,
    timestamp AS at,
    from_json(
      get_json_object(details, '$.flow_progress'),
      'metrics STRUCT<num_output_rows: BIGINT, num_upserted_rows: BIGINT, num_deleted_rows: BIGINT>,
       data_quality STRUCT<quarantined_records: BIGINT>'
    ) AS found
  FROM event_log_raw
  WHERE event_type = 'flow_progress' AND origin.dataset_name IS NOT NULL
),
written AS (
  SELECT
    update_id,
    dataset,
    sum(found.data_quality.quarantined_records) AS quarantined_records,
    max(at) FILTER (WHERE
      coalesce(found.metrics.num_output_rows, 0) + coalesce(found.metrics.num_upserted_rows, 0)
      + coalesce(found.metrics.num_deleted_rows, 0) > 0) AS rows_at
  FROM events
  GROUP BY update_id, dataset
),
judged AS (
  SELECT update_id, dataset, sum(passed_records) AS passed_records, sum(failed_records) AS failed_records
  FROM expectation_metrics
  GROUP BY update_id, dataset
),
refreshed AS (
  SELECT
    update_id,
    dataset,
    CASE
      WHEN count_if(status = 'FAILED') > 0 THEN 'FAILED'
      WHEN count_if(status = 'SKIPPED') > 0 THEN 'SKIPPED'
      WHEN count_if(status = 'STOPPED') > 0 THEN 'STOPPED'
      WHEN count_if(status IN ('STARTING', 'PLANNING', 'RUNNING')) > 0 THEN 'RUNNING'
      WHEN count_if(status = 'QUEUED') > 0 THEN 'QUEUED'
      WHEN count_if(status = 'COMPLETED') > 0 THEN 'COMPLETED'
      ELSE max(status)
    END AS status,
    max(ended_at) AS ended_at,
    sum(coalesce(output_rows, 0) + coalesce(upserted_rows, 0)) AS output_rows,
    sum(dropped_records) AS dropped_records,
    min_by(error_message, ended_at) FILTER (WHERE status = 'FAILED') AS error
  FROM flow_metrics
  WHERE status <> 'EXCLUDED'
  GROUP BY update_id, dataset
),
numbered AS (
  SELECT
    r.*,
    w.quarantined_records,
    row_number() OVER (PARTITION BY r.dataset ORDER BY s.update_started_at DESC, r.update_id) AS age,
    max(CASE WHEN r.status IN ('COMPLETED', 'IDLE') THEN r.ended_at END) OVER (PARTITION BY r.dataset) AS last_completed_at,
    max(w.rows_at) OVER (PARTITION BY r.dataset) AS last_rows_at
  FROM refreshed r
  JOIN written w ON w.update_id = r.update_id AND w.dataset = r.dataset
  JOIN started s ON s.update_id = r.update_id
)
SELECT
  n.dataset,
  t.dataset_type,
  n.update_id AS last_update_id,
  n.status AS last_status,
  n.last_completed_at,
  n.last_rows_at,
  n.output_rows,
  n.dropped_records,
  j.failed_records,
  j.passed_records / nullif(j.passed_records + j.failed_records, 0) AS pass_rate,
  n.quarantined_records,
  n.error
FROM numbered n
LEFT JOIN types t ON t.dataset = n.dataset
LEFT JOIN judged j ON j.update_id = n.update_id AND j.dataset = n.dataset
WHERE n.age = 1
