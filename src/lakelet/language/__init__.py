"""What users write: declarations as values, the `dlt` and `dp` functions, SQL, notebooks, `dbutils`, and the loader. Knows no Spark."""
