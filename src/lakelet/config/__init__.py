"""What an update runs with: bundle files, `spark-pipeline.yml`, tool settings, path map, source files. Knows no Spark."""
