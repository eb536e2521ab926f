-- The n-th time that a box enters a station belongs to the n-th time that it leaves it.
CREATE OR REFRESH MATERIALIZED VIEW station_visits
COMMENT 'One row per visit of a box to a station. A visit that has not ended, or whose beginning has not come, lacks that time.'
AS WITH numbered AS (
  SELECT *, row_number() OVER (PARTITION BY factory, line, box_id, station, direction ORDER BY moved_at) AS visit
  FROM movements
),
visits AS (
  SELECT
    factory, line, box_id, station,
    max(moved_at) FILTER (WHERE direction = 'enter') AS entered_at,
    max(moved_at) FILTER (WHERE direction = 'leave') AS left_at
  FROM numbered
  GROUP BY factory, line, box_id, station, visit
)
SELECT *, unix_timestamp(left_at) - unix_timestamp(entered_at) AS dwell_s FROM visits
