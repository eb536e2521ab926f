"""Layouts of the factories' CSV files, one YAML file each, and the columns that they become."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

HERE = Path(__file__).parent
CATALOG: dict[str, str] = yaml.safe_load((HERE / "catalog.yml").read_text())


@dataclass(frozen=True)
class Layout:
    """How one factory writes a movement.

    `columns`: those of the file, in their order, each with its name in the catalog, or null. `direction`: words of the file and of the
    catalog. `time`: a pattern of Spark, or `epoch_millis`. `zone`: of times that do not say theirs. `csv`: options of Spark's CSV reader.
    """

    factory: str
    columns: dict[str, str | None]
    direction: dict[str, str]
    time: str
    zone: str | None = None
    csv: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> str:
        """The columns of the file, all of them text."""
        return ", ".join(f"`{column}` STRING" for column in self.columns)

    def movements(self, lines: DataFrame) -> DataFrame:
        """The lines as the catalog names and types them, NULL where a value is missing or wrong; `_values` has all texts."""
        typed = {name: self._typed(name, F.col(f"`{column}`")) for column, name in self.columns.items() if name}
        found = lines.select(
            *(({"factory": F.lit(self.factory)} | typed)[name].cast(kind).alias(name) for name, kind in CATALOG.items()),
            F.create_map(*(part for column in self.columns for part in (F.lit(column), F.col(f"`{column}`")))).alias("_values"),
            "_rescued_data",
            F.col("_metadata.file_path").alias("_file"),
        )
        return found.withColumn("is_quarantined", F.expr(" OR ".join(f"{name} IS NULL" for name in CATALOG)))

    def _typed(self, name: str, text: Column) -> Column:
        if name == "direction":
            return F.coalesce(*(F.when(text == word, F.lit(meaning)) for word, meaning in self.direction.items()))
        if name != "moved_at":
            return text.try_cast(CATALOG[name])
        if self.time == "epoch_millis":
            return F.timestamp_millis(text.try_cast("BIGINT"))
        if self.zone is None:
            return F.try_to_timestamp(text, F.lit(self.time))
        return F.try_to_timestamp(F.concat(text, F.lit(f" {self.zone}")), F.lit(f"{self.time} VV"))


def layouts() -> list[Layout]:
    """The layouts of all factories: each file in `factories` is one."""
    return [Layout(path.stem, **yaml.safe_load(path.read_text())) for path in sorted((HERE / "factories").glob("*.yml"))]
