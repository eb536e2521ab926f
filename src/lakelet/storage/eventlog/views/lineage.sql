-- One row per update, flow and table that it reads, and one per pair of columns; a row about whole tables has no columns.
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
FROM pairs
