-- One row per update: what was asked, how it ended, and what it wrote in all.
WITH created AS (
  SELECT
    origin.update_id AS update_id,
    max(origin.pipeline_id) AS pipeline_id,
    max(origin.pipeline_name) AS pipeline_name,
    min(timestamp) AS started_at,
    max(get_json_object(details, '$.create_update.cause')) AS cause,
    max(from_json(get_json_object(details, '$.create_update.refresh_selection'), 'ARRAY<STRING>')) AS selection,
    max(from_json(get_json_object(details, '$.create_update.full_refresh_selection'), 'ARRAY<STRING>')) AS full_refresh
  FROM event_log_raw
  WHERE event_type = 'create_update'
  GROUP BY origin.update_id
),
progress AS (
  SELECT
    origin.update_id AS update_id,
    timestamp AS at,
    struct(timestamp, sequence.data_plane_id.seq_no) AS place,
    get(error.exceptions, 0).message AS problem,
    get_json_object(details, '$.update_progress.state') AS state
  FROM event_log_raw
  WHERE event_type = 'update_progress'
),
ended AS (
  SELECT
    update_id,
    max_by(state, place) AS state,
    max(at) FILTER (WHERE state IN ('COMPLETED', 'FAILED', 'CANCELED')) AS ended_at,
    max_by(problem, place) AS problem
  FROM progress
  GROUP BY update_id
),
flows AS (
  SELECT
    update_id,
    sum(coalesce(output_rows, 0) + coalesce(upserted_rows, 0)) AS rows_written,
    sum(coalesce(dropped_records, 0)) AS dropped_records,
    count_if(status = 'FAILED') AS failed_flows,
    min_by(error_message, ended_at) AS problem
  FROM flow_metrics
  GROUP BY update_id
)
SELECT
  c.update_id,
  c.pipeline_id,
  c.pipeline_name,
  e.state,
  c.cause,
  c.started_at,
  e.ended_at,
  (unix_micros(e.ended_at) - unix_micros(c.started_at)) / 1000000 AS duration_s,
  nullif(array_join(c.selection, ', '), '') AS selection,
  nullif(array_join(c.full_refresh, ', '), '') AS full_refresh,
  coalesce(f.rows_written, 0) AS rows_written,
  coalesce(f.dropped_records, 0) AS dropped_records,
  coalesce(f.failed_flows, 0) AS failed_flows,
  coalesce(e.problem, f.problem) AS error
FROM created c
LEFT JOIN ended e ON e.update_id = c.update_id
LEFT JOIN flows f ON f.update_id = c.update_id
