"""Running one flow: appending to a streaming table, replacing a materialized view."""
