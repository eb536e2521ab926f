"""Judging rows by expectations, in the job that writes them (docs/semantics/expectations.md)."""
