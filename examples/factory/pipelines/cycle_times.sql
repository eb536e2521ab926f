CREATE OR REFRESH MATERIALIZED VIEW cycle_times
COMMENT 'The way of a box from one station to its next one, in seconds; negative where it entered before it left.'
AS WITH ways AS (
  SELECT
    factory, line, box_id,
    station AS from_station,
    lead(station) OVER next AS to_station,
    left_at,
    lead(entered_at) OVER next AS entered_at
  FROM station_visits
  WHERE entered_at IS NOT NULL
  WINDOW next AS (PARTITION BY factory, line, box_id ORDER BY entered_at, station)
)
SELECT *, unix_timestamp(entered_at) - unix_timestamp(left_at) AS seconds FROM ways WHERE to_station IS NOT NULL
