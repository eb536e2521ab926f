"""The page: what the event log and the tables say, as static files, written once or served live on loopback. No Spark."""
