-- One row per rule, flow and update. Rules of a view are counted in each flow that reads it, under the name of the view.
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
LEFT JOIN rules r ON r.update_id = m.update_id AND r.dataset = m.dataset AND r.expectation = m.expectation
