"""Modules that every room uses: errors and their codes, names, source locations, text, redaction, failpoints. Knows no Spark."""
