"""Reading a storage: tables, rows, event log, schema logs."""
