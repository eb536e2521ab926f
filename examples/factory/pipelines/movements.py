"""Box movements of all factories: every line that arrives (bronze), each movement once (silver)."""

import dlt
from layouts import CATALOG, Layout, layouts

LANDING = spark.conf.get("landing")

dlt.create_streaming_table(
    "movements_raw",
    comment="Every line of every file, as the catalog names and types it.",
    partition_cols=["is_quarantined"],
    table_properties={"delta.autoOptimize.autoCompact": "true"},  # many small files come, and silver reads all of them
    expect_all={f"{column}_known": f"{column} IS NOT NULL" for column in CATALOG},
)


def add_files_of(layout: Layout) -> None:
    @dlt.append_flow(target="movements_raw", name=f"{layout.factory}_files")
    def files():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").option("rescuedDataColumn", "_rescued_data")
        return reader.options(**layout.csv).schema(layout.schema).load(f"{LANDING}/{layout.factory}").transform(layout.movements)


for layout in layouts():
    add_files_of(layout)


@dlt.table(comment="Each movement once, however often and however late it came.")
def movements():
    return dlt.read("movements_raw").where("is_quarantined = false").select(*CATALOG).distinct()
