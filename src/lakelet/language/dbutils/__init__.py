"""`dbutils` and the other names that Databricks puts into source files, as far as they mean something here. No Spark.

What a call would do outside of the storage is refused with the remedy; what has no effect in a pipeline is accepted with a notice.
"""

from lakelet.language.dbutils.injected_names import InjectedNames
from lakelet.language.dbutils.tools import DBUtils

__all__ = ["DBUtils", "InjectedNames"]
