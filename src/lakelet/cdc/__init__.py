"""Change data capture: the visible table is a pure function of the set of events (CD-1).

Declared change flows and batches of events come in, Delta commits go out. `tests/cdc_algebra.py` says in plain Python what the result is.
"""
