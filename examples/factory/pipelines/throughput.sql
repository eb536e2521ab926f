CREATE OR REFRESH MATERIALIZED VIEW throughput
COMMENT 'Boxes that left a station of a line, and how often they did, per 15 minutes.'
AS SELECT
  factory, line,
  window(moved_at, '15 minutes').start AS window_start,
  count(DISTINCT box_id) AS boxes,
  count(*) AS leaves
FROM movements
WHERE direction = 'leave'
GROUP BY factory, line, window(moved_at, '15 minutes')
