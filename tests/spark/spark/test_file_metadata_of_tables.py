"""`_metadata` of tables in functions of datasets (LG-25)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    NAME, SIZE = F.col("_metadata.file_name"), F.col("_metadata.file_size")

    @dlt.table
    def from_folder():
        rows = spark.readStream.format("delta").load(spark.conf.get("folder"))
        return rows.withColumn("file", NAME).withColumn("filled", SIZE > 0).where("id > 0")

    @dlt.table
    def from_stream():
        return spark.readStream.table("from_folder").select("id", "from_folder.file", NAME.alias("copied"))

    @dlt.table
    def from_rows():
        return dlt.read("from_folder").select("*", NAME.alias("copied"))

    @dlt.table
    def outside():
        return spark.readStream.table("shop.raw.orders").select("id", NAME.alias("file"))
"""


@pytest.mark.long
def test_streams_of_delta_tables_and_datasets_of_the_pipeline_have_the_column(project):
    p = project(PIPELINE)
    orders = p.folder / "orders"
    write_deltalake(orders, pa.table({"id": [1]}))
    p.parameters = {"folder": str(orders)}
    p.tables = [("shop.raw.orders", "orders")]
    p.run()
    write_deltalake(orders, pa.table({"id": [2]}), mode="append")
    p.run()

    files = {f.name for f in orders.glob("*.parquet")}
    assert {file for _, file in p.rows("outside")} == files
    assert {(i, filled) for i, _, filled in p.rows("from_folder")} == {(1, True), (2, True)}
    own = {f.name for f in p.path("from_folder").glob("*.parquet")}
    assert {copied for _, _, copied in p.rows("from_stream")} == own
    assert {copied for *_, copied in p.rows("from_rows")} == own
    assert {file for _, file, _ in p.rows("from_stream")} == files


def test_the_column_stays_hidden_and_is_no_name_for_what_has_no_files(project):
    p = project("""
        import dlt

        @dlt.table
        def numbers():
            return spark.range(2)

        @dlt.table
        def copied():
            seen = spark.readStream.table("numbers").where("_metadata.file_name IS NOT NULL")
            assert seen.columns == ["id"]
            return seen
    """)
    p.run()
    assert p.rows("copied") == [0, 1]

    p.write("import dlt\n@dlt.table\ndef wrong():\n    return spark.range(2).select('_metadata.file_name')\n", "wrong.py")

    (error,) = p.refused()
    assert error.code == "QUERY_FAILED_ANALYSIS"
