"""The names that every source file of a pipeline has without an import. Read by Pylance and pyright."""

# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from collections.abc import Callable
from typing import Any, overload

from pyspark import SparkContext
from pyspark.dbutils import DBUtils
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.types import DataType

class _Conf(RuntimeConfig):
    @overload  # type: ignore[override]
    def get(self, key: str) -> str: ...
    @overload
    def get(self, key: str, default: str) -> str: ...
    @overload
    def get(self, key: str, default: str | None) -> str | None:
        """Return a parameter of the pipeline, or a setting of Spark. Without a default a missing one is an error."""

class _Session(SparkSession):
    @property
    def conf(self) -> _Conf:
        """The pipeline's parameters and Spark's settings."""

spark: _Session
sc: SparkContext
sqlContext: _Session
dbutils: DBUtils

def display(*args: Any, **kwargs: Any) -> None:
    """Show rows in a notebook. In a pipeline it shows nothing."""

def displayHTML(html: str) -> None:
    """Show HTML in a notebook. In a pipeline it shows nothing."""

def getArgument(name: str, defaultValue: str | None = None) -> str:
    """Return a widget's value."""

def sql(sqlQuery: str, args: dict[str, Any] | list[Any] | None = None, **kwargs: Any) -> DataFrame:
    """Return the rows of a query, as `spark.sql`."""

def table(tableName: str) -> DataFrame:
    """Return a table, as `spark.table`."""

def udf(f: Callable[..., Any] | DataType | str | None = None, returnType: DataType | str = ..., *, useArrow: bool | None = None) -> Any:
    """Make a function of columns, as `pyspark.sql.functions.udf`."""
