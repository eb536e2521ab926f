-- Security rollups. A partition per day: where an update brings events of a few days, only these are computed again.

CREATE OR REFRESH MATERIALIZED VIEW calls_daily
COMMENT "Calls and errors per day, service and action."
PARTITIONED BY (event_date)
AS SELECT event_date, event_source, event_name, count(*) AS calls, count(error_code) AS errors
FROM events
GROUP BY event_date, event_source, event_name;

CREATE OR REFRESH MATERIALIZED VIEW denied_calls
COMMENT "Who was refused what, how often, since when."
PARTITIONED BY (event_date)
AS SELECT event_date, user_arn, event_source, event_name, error_code,
  count(*) AS calls, min(event_time) AS first_at, max(event_time) AS last_at
FROM events
WHERE error_code LIKE '%Denied%' OR error_code LIKE '%Unauthorized%'
GROUP BY event_date, user_arn, event_source, event_name, error_code;

CREATE OR REFRESH MATERIALIZED VIEW principals_daily
COMMENT "What each principal did per day: calls, and over how many services, regions and addresses."
PARTITIONED BY (event_date)
AS SELECT event_date, user_arn, count(*) AS calls,
  count(DISTINCT event_source) AS services,
  count(DISTINCT aws_region) AS regions,
  count(DISTINCT source_ip) AS source_ips,
  count_if(error_code LIKE '%Denied%' OR error_code LIKE '%Unauthorized%') AS denied
FROM events
GROUP BY event_date, user_arn;

CREATE OR REFRESH STREAMING TABLE sensitive_changes
COMMENT "Calls that change who may do what, or what is logged."
AS SELECT event_time, event_id, user_arn, source_ip, event_source, event_name, error_code
FROM STREAM(events)
WHERE event_name IN (
  'CreateUser', 'DeleteUser', 'CreateAccessKey', 'AttachUserPolicy', 'AttachRolePolicy', 'PutUserPolicy', 'PutRolePolicy',
  'CreateLoginProfile', 'UpdateLoginProfile', 'StopLogging', 'DeleteTrail', 'UpdateTrail', 'PutBucketPolicy', 'DeleteBucketPolicy',
  'AuthorizeSecurityGroupIngress', 'DeactivateMFADevice', 'ConsoleLogin');
