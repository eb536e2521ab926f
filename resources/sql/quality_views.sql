-- Views of a pipeline's event log: the same names and columns as in `lakelet sql`.
-- The job quality_views runs it in the catalog and schema of the deployment target, where the pipeline publishes its event log.
-- Written by scripts/databricks_quality.py; changes belong into src/lakelet/storage/eventlog/views/.

USE CATALOG IDENTIFIER(:catalog);

USE SCHEMA IDENTIFIER(:schema);

CREATE OR REPLACE VIEW event_log_raw
COMMENT 'The event log.'
AS SELECT * FROM system_a_event_log;

CREATE OR REPLACE VIEW latest_update
COMMENT 'The update that was created last, as the public documentation''s queries call it.'
AS
SELECT origin.update_id AS id
FROM event_log_raw
WHERE event_type = 'create_update'
ORDER BY timestamp DESC
LIMIT 1;

CREATE OR REPLACE VIEW flow_metrics
COMMENT 'One row per flow and update: how it ended, when, and what it wrote. Counts are sums over the update''s events; backlog is what was reported last.'
AS
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
LEFT JOIN definitions d ON d.update_id = f.update_id AND d.flow_name = f.flow_name;

CREATE OR REPLACE VIEW updates
COMMENT 'One row per update: what was asked, how it ended, and what it wrote in all.'
AS
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
LEFT JOIN flows f ON f.update_id = c.update_id;

CREATE OR REPLACE VIEW expectation_metrics
COMMENT 'One row per rule, flow and update. Rules of a view are counted in each flow that reads it, under the name of the view.'
AS
WITH events AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    timestamp AS at,
    explode(from_json(
      get_json_object(details, '$.flow_progress.data_quality.expectations'),
      'ARRAY<STRUCT<name: STRING, dataset: STRING, passed_records: BIGINT, failed_records: BIGINT>>'
    )) AS rule
  FROM event_log_raw
  WHERE event_type = 'flow_progress'
),
measured AS (
  SELECT
    update_id,
    flow_name,
    rule.dataset AS dataset,
    rule.name AS expectation,
    max(at) AS updated_at,
    sum(coalesce(rule.passed_records, 0)) AS passed_records,
    sum(coalesce(rule.failed_records, 0)) AS failed_records
  FROM events
  GROUP BY update_id, flow_name, rule.dataset, rule.name
),
declared AS (
  SELECT
    origin.update_id AS update_id,
    origin.dataset_name AS dataset,
    explode(from_json(
      coalesce(
        get_json_object(details, '$.dataset_definition.expectations'),
        get_json_object(details, '$.flow_definition.view_expectations')
      ),
      'ARRAY<STRUCT<dataset: STRING, name: STRING, `constraint`: STRING, action: STRING,
         description: STRING, owner: STRING, tags: ARRAY<STRING>>>'
    )) AS rule
  FROM event_log_raw
  WHERE event_type IN ('dataset_definition', 'flow_definition')
),
rules AS (
  SELECT
    update_id,
    coalesce(rule.dataset, dataset) AS dataset,
    rule.name AS expectation,
    max(rule.`constraint`) AS `constraint`,
    max(rule.action) AS action,
    max(rule.owner) AS owner,
    max(rule.description) AS description,
    max(array_join(rule.tags, ', ')) AS tags
  FROM declared
  GROUP BY update_id, coalesce(rule.dataset, dataset), rule.name
)
SELECT
  m.update_id,
  m.updated_at,
  m.flow_name,
  m.dataset,
  m.expectation,
  r.`constraint`,
  r.action,
  m.passed_records,
  m.failed_records,
  m.passed_records / nullif(m.passed_records + m.failed_records, 0) AS pass_rate,
  r.owner,
  r.description,
  r.tags
FROM measured m
LEFT JOIN rules r ON r.update_id = m.update_id AND r.dataset = m.dataset AND r.expectation = m.expectation;

CREATE OR REPLACE VIEW violation_samples
COMMENT 'One row per row that broke a rule, a few of each rule, flow and batch. Only Lakelet reports them; personal columns are hidden.'
AS
WITH events AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    timestamp AS at,
    explode(from_json(
      get_json_object(details, '$.flow_progress.data_quality.samples'),
      'ARRAY<STRUCT<name: STRING, dataset: STRING, row_json: STRING, file: STRING>>'
    )) AS sample
  FROM event_log_raw
  WHERE event_type = 'flow_progress'
)
SELECT
  update_id,
  min(at) AS reported_at,
  flow_name,
  sample.dataset AS dataset,
  sample.name AS expectation,
  sample.row_json AS row_json,
  sample.file AS file
FROM events
GROUP BY update_id, flow_name, sample.dataset, sample.name, sample.row_json, sample.file;

CREATE OR REPLACE VIEW dataset_health
COMMENT 'One row per dataset: its latest update in which it took part, and when it was last complete and last got rows.'
AS
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
WHERE age = 1 AND took_part;

CREATE OR REPLACE VIEW lineage
COMMENT 'One row per update, flow and table that it reads, and one per pair of columns; a row about whole tables has no columns.'
AS
WITH tables AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    coalesce(
      get_json_object(details, '$.flow_definition.output_dataset'),
      get_json_object(details, '$.flow_definition.output_sink')
    ) AS output_dataset,
    explode(from_json(get_json_object(details, '$.flow_definition.input_datasets'), 'ARRAY<STRING>')) AS input_dataset
  FROM event_log_raw
  WHERE event_type = 'flow_definition'
),
traced AS (
  SELECT
    origin.update_id AS update_id,
    origin.flow_name AS flow_name,
    get_json_object(details, '$.column_lineage.output_dataset') AS output_dataset,
    explode(from_json(
      get_json_object(details, '$.column_lineage.columns'),
      'ARRAY<STRUCT<name: STRING, inputs: ARRAY<STRUCT<dataset: STRING, `column`: STRING>>>>'
    )) AS made
  FROM event_log_raw
  WHERE event_type = 'column_lineage'
),
pairs AS (
  SELECT update_id, flow_name, output_dataset, made.name AS output_column, explode(made.inputs) AS input
  FROM traced
)
SELECT update_id, flow_name, output_dataset, CAST(NULL AS STRING) AS output_column, input_dataset, CAST(NULL AS STRING) AS input_column
FROM tables
UNION ALL
SELECT update_id, flow_name, output_dataset, output_column, input.dataset AS input_dataset, input.`column` AS input_column
FROM pairs;

CREATE OR REPLACE VIEW schema_changes
COMMENT 'One row per column that files brought or made wider. Only Lakelet reports these events: on Databricks the view is empty.'
AS
WITH changes AS (
  SELECT
    origin.update_id AS update_id,
    timestamp AS changed_at,
    origin.dataset_name AS dataset,
    from_json(
      get_json_object(details, '$.schema_change'),
      'flow_name STRING, source STRING, first_file STRING,
       added ARRAY<STRUCT<name: STRING, `type`: STRING>>, widened ARRAY<STRUCT<name: STRING, `to`: STRING>>'
    ) AS found
  FROM event_log_raw
  WHERE event_type = 'schema_change'
),
added AS (
  SELECT update_id, changed_at, dataset, found, explode(found.added) AS changed
  FROM changes
),
widened AS (
  SELECT update_id, changed_at, dataset, found, explode(found.widened) AS changed
  FROM changes
)
SELECT
  update_id,
  changed_at,
  dataset,
  found.flow_name AS flow_name,
  found.source AS source,
  'added' AS change,
  changed.name AS column_name,
  changed.`type` AS data_type,
  found.first_file AS file
FROM added
UNION ALL
SELECT
  update_id,
  changed_at,
  dataset,
  found.flow_name AS flow_name,
  found.source AS source,
  'widened' AS change,
  changed.name AS column_name,
  changed.`to` AS data_type,
  found.first_file AS file
FROM widened;

CREATE OR REPLACE VIEW table_checks
COMMENT 'One row per check of a whole table. Only Lakelet reports these events: on Databricks the view is empty.'
AS
WITH checks AS (
  SELECT
    origin.update_id AS update_id,
    timestamp AS checked_at,
    from_json(
      get_json_object(details, '$.table_check'),
      'dataset STRING, table_version BIGINT, name STRING, severity STRING, success BOOLEAN,
       observed STRING, expected STRING, message STRING, owner STRING, description STRING, tags ARRAY<STRING>'
    ) AS found
  FROM event_log_raw
  WHERE event_type = 'table_check'
)
SELECT
  update_id,
  checked_at,
  found.dataset AS dataset,
  found.table_version AS table_version,
  found.name AS check_name,
  found.severity AS severity,
  found.success AS success,
  found.observed AS observed,
  found.expected AS expected,
  found.message AS message,
  found.owner AS owner,
  found.description AS description,
  array_join(found.tags, ', ') AS tags
FROM checks;

CREATE OR REPLACE VIEW dataset_sources
COMMENT 'One row per dataset and dataset upstream of it, as defined today: what of its changes has arrived, and what waits.'
AS
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
GROUP BY p.dataset, p.source;

CREATE OR REPLACE VIEW dataset_freshness
COMMENT 'One row per dataset that reads others: how old it is against its sources, and what waits.'
AS
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
LEFT JOIN dataset_health h ON h.dataset = s.dataset;

CREATE OR REPLACE VIEW affected_datasets
COMMENT 'One row per dataset that failed, was stopped or is late, and dataset downstream of it.'
AS
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
LEFT JOIN dataset_health h ON h.dataset = s.dataset;

CREATE OR REPLACE VIEW bad_input
COMMENT 'One row per update, flow, source and kind of input that could not be read whole, and per flow with late rows. Only Lakelet reports these events.'
AS
WITH events AS (
  SELECT
    origin.update_id AS update_id,
    timestamp AS reported_at,
    coalesce(origin.dataset_name, origin.sink_name) AS dataset,
    coalesce(
      get_json_object(details, '$.source_records.flow_name'),
      get_json_object(details, '$.late_records.flow_name'),
      origin.flow_name
    ) AS flow_name,
    from_json(
      get_json_object(details, '$.source_records'),
      'source STRING, corrupt BIGINT, left_out BIGINT, rescued BIGINT, passed_over BIGINT, undecodable BIGINT,
       first_file STRING, first_line BIGINT, corrupt_file STRING, corrupt_line BIGINT, rescued_file STRING, rescued_line BIGINT,
       unit STRING, reason STRING, first_text STRING, corrupt_text STRING, rescued_text STRING, rescued_column STRING'
    ) AS found,
    CAST(get_json_object(details, '$.late_records.dropped_by_watermark') AS BIGINT) AS late
  FROM event_log_raw
  WHERE event_type IN ('source_records', 'late_records')
),
kinds AS (
  SELECT
    *,
    'broken' AS problem,
    coalesce(found.corrupt, 0) - coalesce(found.left_out, 0) AS bad_records,
    'lines or records that do not parse' AS cause,
    'Correct the file at its source; the text is in the column for corrupt records.' AS remedy
  FROM events
  UNION ALL
  SELECT
    *,
    'left out' AS problem,
    found.left_out AS bad_records,
    'records that the options of the source leave out' AS cause,
    'Look into the file; without mode DROPMALFORMED, badRecordsPath and ignoreCorruptFiles they are kept.' AS remedy
  FROM events
  UNION ALL
  SELECT
    *,
    'rescued' AS problem,
    found.rescued AS bad_records,
    'values that do not fit the type or the name of their column' AS cause,
    'Look at _rescued_data; give a schema hint, or add the column.' AS remedy
  FROM events
  UNION ALL
  SELECT
    *,
    'unread text' AS problem,
    found.passed_over AS bad_records,
    'text after the first JSON value of a line or document' AS cause,
    'Write one value a line, or read the file with multiLine.' AS remedy
  FROM events
  UNION ALL
  SELECT
    *,
    'undecodable' AS problem,
    found.undecodable AS bad_records,
    'bytes that are not of the encoding' AS cause,
    'Give the option encoding, or write the file in UTF-8.' AS remedy
  FROM events
  UNION ALL
  SELECT
    *,
    'late' AS problem,
    late AS bad_records,
    'rows that came later than the watermark allows' AS cause,
    'Allow more delay in withWatermark, or find out why the source is late.' AS remedy
  FROM events
)
SELECT
  update_id,
  reported_at,
  dataset,
  flow_name,
  found.source AS source,
  problem,
  bad_records,
  coalesce(
    CASE WHEN problem IN ('broken', 'left out') THEN found.corrupt_file WHEN problem = 'rescued' THEN found.rescued_file END,
    found.first_file
  ) AS file,
  CASE
    WHEN problem IN ('broken', 'left out') AND found.corrupt_file IS NOT NULL THEN found.corrupt_line
    WHEN problem = 'rescued' AND found.rescued_file IS NOT NULL THEN found.rescued_line
    ELSE found.first_line
  END AS line,
  coalesce(found.unit, CASE WHEN found.first_file IS NOT NULL THEN 'line' END) AS unit,
  cause,
  CASE WHEN problem = 'undecodable' THEN coalesce(found.reason, remedy) ELSE remedy END AS remedy,
  CASE WHEN problem = 'rescued' THEN found.rescued_column END AS column_name,
  CASE
    WHEN problem IN ('broken', 'left out') AND found.corrupt_file IS NOT NULL THEN found.corrupt_text
    WHEN problem = 'rescued' AND found.rescued_file IS NOT NULL THEN found.rescued_text
    ELSE found.first_text
  END AS sample
FROM kinds
WHERE bad_records > 0;

CREATE OR REPLACE VIEW faults
COMMENT 'One row per dataset that fails, rule that rows break and check that does not hold now: since which update, and in how many. A rule is judged by its present text.'
AS
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
GROUP BY kind, dataset, name;
