-- Silver: who the agents are, from the change records of their master data.
-- Records come late, twice and out of order, and a delete may come before its insert: the change time decides, not the order of arrival.
CREATE OR REFRESH STREAMING TABLE agents
COMMENT 'The agents there are now.'
TBLPROPERTIES ('quality' = 'silver', 'delta.enableChangeDataFeed' = 'true');

CREATE FLOW agents AS AUTO CDC INTO agents
FROM STREAM(agent_changes)
KEYS (agent_id)
APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 1;

CREATE OR REFRESH STREAMING TABLE agents_history
COMMENT 'Who was in which team at which site, and when.'
TBLPROPERTIES ('quality' = 'silver');

CREATE FLOW agents_history AS AUTO CDC INTO agents_history
FROM STREAM(agent_changes)
KEYS (agent_id)
APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 2
TRACK HISTORY ON team, site;
