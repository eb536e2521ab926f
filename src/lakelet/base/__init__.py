"""Modules that every room uses: errors and their codes, names, places in user code, text, secrets, failpoints. Knows no Spark."""

VERSION = "0.1.0"
"""The version of this package; `pyproject.toml` has the same."""
