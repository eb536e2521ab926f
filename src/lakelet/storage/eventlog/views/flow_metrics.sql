-- One row per flow and update: how it ended, when, and what it wrote. Counts are sums over the update's events; backlog is what was reported last.
WITH progress AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    coalesce(origin.dataset_name, origin.sink_name) AS dataset,
    timestamp AS at,
    struct(timestamp, sequence.data_plane_id.seq_no) AS place,
    get(error.exceptions, 0) AS problem,
    from_json(
      get_json_object(details, '$.flow_progress'),
      'status STRING,
       metrics STRUCT<num_output_rows: BIGINT, num_upserted_rows: BIGINT, num_deleted_rows: BIGINT,
                      backlog_files: BIGINT, backlog_bytes: BIGINT, backlog_records: BIGINT>,
       data_quality STRUCT<dropped_records: BIGINT>'
    ) AS found
  FROM event_log_raw
  WHERE event_type = 'flow_progress' AND origin.flow_name IS NOT NULL
    AND origin.flow_name <> 'pipelines.flowTimeMetrics.missingFlowName'
),
definitions AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    max(coalesce(
      get_json_object(details, '$.flow_definition.output_dataset'),
      get_json_object(details, '$.flow_definition.output_sink')
    )) AS dataset,
    max(get_json_object(details, '$.flow_definition.flow_type')) AS flow_type
  FROM event_log_raw
  WHERE event_type = 'flow_definition'
  GROUP BY origin.update_id, origin.flow_name
),
flows AS (
  SELECT
    update_id,
    flow_name,
    max(dataset) AS dataset,
    max_by(found.status, place) AS status,
    min(at) FILTER (WHERE found.status IN ('STARTING', 'PLANNING', 'RUNNING')) AS started_at,
    max(at) FILTER (WHERE found.status NOT IN ('QUEUED', 'EXCLUDED')) AS last_at,
    sum(found.metrics.num_output_rows) AS output_rows,
    sum(found.metrics.num_upserted_rows) AS upserted_rows,
    sum(found.metrics.num_deleted_rows) AS deleted_rows,
    sum(found.data_quality.dropped_records) AS dropped_records,
    max_by(found.metrics.backlog_files, place) FILTER (WHERE found.metrics.backlog_files IS NOT NULL) AS backlog_files,
    max_by(found.metrics.backlog_bytes, place) FILTER (WHERE found.metrics.backlog_bytes IS NOT NULL) AS backlog_bytes,
    max_by(found.metrics.backlog_records, place) FILTER (WHERE found.metrics.backlog_records IS NOT NULL) AS backlog_records,
    max_by(problem.class_name, place) FILTER (WHERE found.status = 'FAILED') AS error_class,
    max_by(problem.message, place) FILTER (WHERE found.status = 'FAILED') AS error_message
  FROM progress
  GROUP BY update_id, flow_name
),
ended AS (
  SELECT *, CASE WHEN status IN ('COMPLETED', 'IDLE', 'FAILED', 'SKIPPED', 'STOPPED') THEN last_at END AS ended_at
  FROM flows
)
SELECT
  f.update_id,
  f.flow_name,
  coalesce(d.dataset, f.dataset) AS dataset,
  d.flow_type,
  f.status,
  f.started_at,
  f.ended_at,
  (unix_micros(f.ended_at) - unix_micros(f.started_at)) / 1000000 AS duration_s,
  f.output_rows,
  f.upserted_rows,
  f.deleted_rows,
  f.dropped_records,
  f.backlog_files,
  f.backlog_bytes,
  f.backlog_records,
  CASE WHEN f.status = 'FAILED' THEN f.error_class END AS error_class,
  CASE WHEN f.status = 'FAILED' THEN f.error_message END AS error_message
FROM ended f
LEFT JOIN definitions d ON d.update_id = f.update_id AND d.flow_name = f.flow_name
