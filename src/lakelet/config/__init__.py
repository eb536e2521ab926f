"""Configuration of updates: bundle files, `spark-pipeline.yml`, tool settings, path map, source files. Knows no Spark."""
