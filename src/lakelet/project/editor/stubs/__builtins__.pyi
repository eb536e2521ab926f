"""The names that every source file of a pipeline has without an import. Read by Pylance and pyright."""

# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from typing import Any, overload

from pyspark import SparkContext
from pyspark.dbutils import DBUtils
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

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
dbutils: DBUtils

def display(*args: Any, **kwargs: Any) -> None:
    """Show rows in a notebook. In a pipeline it shows nothing."""

def displayHTML(html: str) -> None:
    """Show HTML in a notebook. In a pipeline it shows nothing."""

def getArgument(name: str, defaultValue: str | None = None) -> str:
    """Return a widget's value."""
