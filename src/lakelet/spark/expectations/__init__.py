"""Rules on rows: which columns a rule sees, and what rules count and drop in the job that writes the rows (docs/semantics/expectations.md).

Declared rules come in. `resolution` finds their columns, for analysis and runs alike, `measure` judges rows in one pass, `violations` makes
the error of a broken fail rule. Rules that do not fit their columns are refused before, in `analysis/rule_checks.py`.
"""
