-- One row per check of a whole table. Only Lakelet reports these events: on Databricks the view is empty.
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
FROM checks
