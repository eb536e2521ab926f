"""Change data capture: the visible table is a pure function of the set of events (CD-1).

`algebra` says what the result is, in plain Python; the other modules compute it in Spark and keep it in Delta.
"""
