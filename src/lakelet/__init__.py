"""Lakelet runs Delta Live Tables code unchanged on a laptop, on any Spark cluster and on Databricks."""

__version__ = "0.1.0"
