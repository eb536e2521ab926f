-- One row per row that broke a rule, a few of each rule, flow and batch. Only Lakelet reports them; personal columns are hidden.
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
GROUP BY update_id, flow_name, sample.dataset, sample.name, sample.row_json, sample.file
