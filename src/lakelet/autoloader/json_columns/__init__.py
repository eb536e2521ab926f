"""`from_json` with a schema that is inferred and grows (JC-1 to JC-9, docs/decisions/0055-json-columns.md)."""
