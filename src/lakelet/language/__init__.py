"""Pipeline language: declarations as values, the `dlt` and `dp` functions, SQL, notebooks, `dbutils`, and the loader. Knows no Spark."""
