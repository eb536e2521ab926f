"""Files that carry a schema: Avro, ORC, Parquet."""
