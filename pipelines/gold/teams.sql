-- Gold: the work of teams, by day. An agent's work counts for the team that the agent was in when the day ended, NULL if in none.
CREATE OR REFRESH MATERIALIZED VIEW team_daily
COMMENT 'What each team did each day.'
TBLPROPERTIES ('quality' = 'gold')
AS
SELECT
  worked.day,
  version.team,
  count(*) AS agents,
  count(employed.agent_id) AS agents_employed, -- those that are agents now
  sum(worked.conversations_closed) AS conversations_closed,
  sum(worked.messages_sent) AS messages_sent
FROM agent_daily AS worked
LEFT JOIN agents_history AS version
  ON version.agent_id = worked.agent_id
  AND version.__START_AT < CAST(date_add(worked.day, 1) AS TIMESTAMP)
  AND (version.__END_AT IS NULL OR version.__END_AT >= CAST(date_add(worked.day, 1) AS TIMESTAMP))
LEFT JOIN agents AS employed
  ON employed.agent_id = worked.agent_id
GROUP BY worked.day, version.team;
