"""Checks of whole tables after an update: their words, Great Expectations, results as events (docs/reference/rules.md)."""
