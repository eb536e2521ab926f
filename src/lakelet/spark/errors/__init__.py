"""Spark's errors and errors of user code, as coded errors."""
