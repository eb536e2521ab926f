"""The sensitive changes for others, as Parquet files below the folder `export`. Without that parameter nothing is declared or sent."""

import dlt

EXPORT = spark.conf.get("export", "")

if EXPORT:
    dlt.create_sink("sensitive_changes_files", "parquet", {"path": f"{EXPORT}/sensitive_changes"})

    @dlt.append_flow(target="sensitive_changes_files")
    def send_sensitive_changes():
        return dlt.read_stream("sensitive_changes")
