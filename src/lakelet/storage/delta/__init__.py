"""Delta tables: their logs, schemas and transactions."""
