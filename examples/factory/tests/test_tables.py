"""The tables of two deliveries, the second with late and repeated files, against what tests/oracle.py reads from the files alone."""

from collections import Counter

from generate import files_of_drop
from tests.oracle import expected

TABLES = ("movements", "station_visits", "cycle_times", "throughput", "bottlenecks")


def test_every_table_is_what_the_files_say(lakelet):
    p = lakelet()
    for drops in (range(6), range(6, 9)):
        for drop in drops:
            for path, text in files_of_drop(1, 4, drop):
                p.arrive(path, text.encode())
        p.update()
        wanted = expected(p.landing)
        for table in TABLES:
            assert Counter(tuple(row.values()) for row in p.rows(table)) == Counter(wanted[table]), table
