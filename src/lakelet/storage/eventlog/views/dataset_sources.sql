-- One row per dataset and dataset upstream of it, as defined today: what of its changes has arrived, and what waits.
WITH RECURSIVE runs AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    coalesce(origin.dataset_name, origin.sink_name) AS dataset,
    timestamp AS at,
    struct(timestamp, sequence.data_plane_id.seq_no) AS place,
    from_json(
      get_json_object(details, '$.flow_progress'),
      'status STRING, metrics STRUCT<num_output_rows: BIGINT, num_upserted_rows: BIGINT, num_deleted_rows: BIGINT>'
    ) AS found
  FROM event_log_raw
  WHERE event_type = 'flow_progress' AND origin.flow_name IS NOT NULL
    AND origin.flow_name <> 'pipelines.flowTimeMetrics.missingFlowName'
),
counted AS (
  SELECT
    *,
    coalesce(found.metrics.num_output_rows, 0) + coalesce(found.metrics.num_upserted_rows, 0)
      + coalesce(found.metrics.num_deleted_rows, 0) AS changed
  FROM runs
),
flows AS (
  SELECT
    update_id,
    flow_name,
    dataset,
    max_by(found.status, place) AS status,
    min(at) FILTER (WHERE found.status IN ('STARTING', 'PLANNING', 'RUNNING')) AS began,
    max(at) FILTER (WHERE found.status IN ('COMPLETED', 'IDLE', 'FAILED', 'SKIPPED', 'STOPPED')) AS ended,
    max(at) FILTER (WHERE changed > 0) AS rows_at,
    sum(changed) AS changed
  FROM counted
  GROUP BY update_id, flow_name, dataset
),
refreshed AS (
  SELECT
    flow_name,
    dataset,
    max(CASE
      WHEN status IN ('COMPLETED', 'IDLE') THEN coalesce(began, ended)
      WHEN status IN ('STARTING', 'PLANNING', 'RUNNING') THEN rows_at
    END) AS good_at
  FROM flows
  GROUP BY flow_name, dataset
),
defined AS (
  SELECT
    origin.pipeline_id AS pipeline_id,
    origin.update_id AS update_id,
    min(timestamp) AS at,
    count_if(event_type = 'dataset_definition') AS datasets
  FROM event_log_raw
  WHERE origin.update_id IS NOT NULL
  GROUP BY origin.pipeline_id, origin.update_id
),
newest AS (
  SELECT update_id, row_number() OVER (PARTITION BY pipeline_id ORDER BY at DESC, update_id) AS age
  FROM defined
  WHERE datasets > 0
),
edges AS (
  SELECT DISTINCT l.output_dataset AS dataset, l.input_dataset AS source, l.flow_name
  FROM lineage l
  JOIN newest n ON n.update_id = l.update_id
  WHERE n.age = 1 AND l.output_dataset <> l.input_dataset AND l.flow_name IS NOT NULL
),
direct AS (
  SELECT e.dataset, e.source, min(coalesce(r.good_at, CAST('1970-01-01 00:00:00' AS TIMESTAMP))) AS reach
  FROM edges e
  LEFT JOIN refreshed r ON r.flow_name = e.flow_name AND r.dataset = e.dataset
  GROUP BY e.dataset, e.source
),
paths AS (
  SELECT dataset, source, reach, 1 AS distance
  FROM direct
  UNION ALL
  SELECT d.dataset, p.source, least(d.reach, p.reach) AS reach, p.distance + 1 AS distance
  FROM paths p
  JOIN direct d ON d.source = p.dataset
  WHERE p.distance < 50
),
pairs AS (
  SELECT p.dataset, p.source, min(p.reach) AS reach, min(p.distance) AS distance, count(i.source) = 0 AS is_first
  FROM paths p
  LEFT JOIN direct i ON i.dataset = p.source
  GROUP BY p.dataset, p.source
)
SELECT
  p.dataset,
  p.source,
  CAST(min(p.distance) AS BIGINT) AS distance,
  min(p.is_first) AS is_first,
  max(c.rows_at) AS source_changed_at,
  max(c.rows_at) FILTER (WHERE c.rows_at <= p.reach) AS contains_at,
  min(c.rows_at) FILTER (WHERE c.rows_at > p.reach) AS waiting_since_at,
  coalesce(sum(c.changed) FILTER (WHERE c.rows_at > p.reach), 0) AS waiting_rows
FROM pairs p
LEFT JOIN flows c ON c.dataset = p.source AND c.rows_at IS NOT NULL
GROUP BY p.dataset, p.source
