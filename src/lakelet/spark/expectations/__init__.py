"""Judging rows by expectations, in the job that writes them (dlt-semantics section 3)."""
