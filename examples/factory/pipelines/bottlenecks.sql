CREATE OR REFRESH MATERIALIZED VIEW bottlenecks
COMMENT 'Stations of a line by hour, the one where boxes stay longest first.'
AS WITH stays AS (
  SELECT
    factory, line, date_trunc('HOUR', entered_at) AS hour, station,
    count(*) AS visits,
    avg(dwell_s) AS mean_dwell_s,
    max(dwell_s) AS max_dwell_s
  FROM station_visits
  WHERE dwell_s IS NOT NULL
  GROUP BY factory, line, hour, station
)
SELECT *, rank() OVER (PARTITION BY factory, line, hour ORDER BY mean_dwell_s DESC, station) AS rank FROM stays
