-- One row per dataset: its latest update in which it took part, and when it was last complete and last got rows.
WITH events AS (
  SELECT
    event_type,
    origin.update_id AS update_id,
    origin.dataset_name AS dataset,
    CASE WHEN origin.flow_name <> 'pipelines.flowTimeMetrics.missingFlowName' THEN origin.flow_name END AS flow_name,
    timestamp AS at,
    struct(timestamp, sequence.data_plane_id.seq_no) AS place,
    get(error.exceptions, 0).message AS problem,
    from_json(
      get_json_object(details, '$.dataset_definition'),
      'dataset_type STRING, owner STRING, comment STRING, tags ARRAY<STRING>'
    ) AS said,
    from_json(
      get_json_object(details, '$.flow_progress'),
      'status STRING,
       metrics STRUCT<num_output_rows: BIGINT, num_upserted_rows: BIGINT, num_deleted_rows: BIGINT>,
       data_quality STRUCT<dropped_records: BIGINT, quarantined_records: BIGINT,
         expectations: ARRAY<STRUCT<dataset: STRING, passed_records: BIGINT, failed_records: BIGINT>>>'
    ) AS found
  FROM event_log_raw
  WHERE event_type IN ('create_update', 'dataset_definition', 'flow_progress')
),
measured AS (
  SELECT
    *,
    filter(found.data_quality.expectations, rule -> rule.dataset = dataset) AS rules,
    coalesce(found.metrics.num_output_rows, 0) + coalesce(found.metrics.num_upserted_rows, 0) AS output_rows,
    coalesce(found.metrics.num_deleted_rows, 0) AS deleted_rows
  FROM events
  WHERE event_type = 'create_update' OR dataset IS NOT NULL
),
flows AS (
  SELECT
    update_id,
    dataset,
    flow_name,
    min(at) FILTER (WHERE event_type = 'create_update') AS created_at,
    max(struct(
      at,
      said.dataset_type AS dataset_type,
      said.owner AS owner,
      said.comment AS description,
      array_join(said.tags, ', ') AS tags
    )) FILTER (WHERE event_type = 'dataset_definition') AS defined,
    max_by(found.status, place) FILTER (WHERE event_type = 'flow_progress') AS status,
    max(at) FILTER (WHERE found.status NOT IN ('QUEUED', 'EXCLUDED')) AS last_at,
    max(at) FILTER (WHERE output_rows + deleted_rows > 0) AS rows_at,
    sum(output_rows) AS output_rows,
    sum(found.data_quality.dropped_records) AS dropped_records,
    sum(found.data_quality.quarantined_records) AS quarantined_records,
    sum(CASE WHEN size(rules) > 0 THEN aggregate(rules, 0L, (total, rule) -> total + coalesce(rule.passed_records, 0L)) END) AS passed_records,
    sum(CASE WHEN size(rules) > 0 THEN aggregate(rules, 0L, (total, rule) -> total + coalesce(rule.failed_records, 0L)) END) AS failed_records,
    max_by(problem, place) FILTER (WHERE found.status = 'FAILED') AS problem
  FROM measured
  GROUP BY update_id, dataset, flow_name
),
dated AS (
  SELECT
    *,
    flow_name IS NOT NULL AND status <> 'EXCLUDED' AS ran,
    CASE WHEN status IN ('COMPLETED', 'IDLE', 'FAILED', 'SKIPPED', 'STOPPED') THEN last_at END AS ended_at,
    min(created_at) OVER (PARTITION BY update_id) AS update_started_at
  FROM flows
),
refreshed AS (
  SELECT
    update_id,
    dataset,
    min(update_started_at) AS update_started_at,
    max(defined) AS defined,
    count_if(ran) > 0 AND min(update_started_at) IS NOT NULL AS took_part,
    CASE
      WHEN count_if(ran AND status = 'FAILED') > 0 THEN 'FAILED'
      WHEN count_if(ran AND status = 'SKIPPED') > 0 THEN 'SKIPPED'
      WHEN count_if(ran AND status = 'STOPPED') > 0 THEN 'STOPPED'
      WHEN count_if(ran AND status IN ('STARTING', 'PLANNING', 'RUNNING')) > 0 THEN 'RUNNING'
      WHEN count_if(ran AND status = 'QUEUED') > 0 THEN 'QUEUED'
      WHEN count_if(ran AND status = 'COMPLETED') > 0 THEN 'COMPLETED'
      ELSE max(status) FILTER (WHERE ran)
    END AS status,
    max(ended_at) FILTER (WHERE ran) AS ended_at,
    max(rows_at) AS rows_at,
    sum(output_rows) FILTER (WHERE ran) AS output_rows,
    sum(dropped_records) FILTER (WHERE ran) AS dropped_records,
    sum(quarantined_records) AS quarantined_records,
    sum(passed_records) AS passed_records,
    sum(failed_records) AS failed_records,
    min_by(problem, ended_at) FILTER (WHERE ran AND status = 'FAILED') AS error
  FROM dated
  WHERE dataset IS NOT NULL
  GROUP BY update_id, dataset
),
numbered AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY dataset ORDER BY took_part DESC, update_started_at DESC, update_id) AS age,
    max(CASE WHEN took_part AND status IN ('COMPLETED', 'IDLE') THEN ended_at END) OVER (PARTITION BY dataset) AS last_completed_at,
    max(CASE WHEN took_part THEN rows_at END) OVER (PARTITION BY dataset) AS last_rows_at,
    max(defined) OVER (PARTITION BY dataset) AS latest
  FROM refreshed
)
SELECT
  dataset,
  latest.dataset_type AS dataset_type,
  update_id AS last_update_id,
  status AS last_status,
  last_completed_at,
  last_rows_at,
  output_rows,
  dropped_records,
  failed_records,
  passed_records / nullif(passed_records + failed_records, 0) AS pass_rate,
  quarantined_records,
  error,
  latest.owner AS owner,
  latest.description AS description,
  latest.tags AS tags
FROM numbered
WHERE age = 1 AND took_part
