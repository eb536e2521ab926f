-- One row per column that files brought or made wider. Only Lakelet reports these events: on Databricks the view is empty.
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
FROM widened
