"""Replacements of pyspark's methods while an update runs."""
