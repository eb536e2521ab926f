"""The event log: what an update did, in the shape that it has on Databricks (docs/semantics/event-log.md)."""
