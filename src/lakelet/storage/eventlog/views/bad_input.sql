-- One row per update, flow, source and kind of input that could not be read whole, and per flow with late rows. Only Lakelet reports these events.
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
WHERE bad_records > 0
