"""The gold tables of two deliveries, the second with late and repeated files, against what tests/oracle.py reads from the files alone."""

from collections import Counter

from generate import files
from tests.oracle import expected

TABLES = ("calls_daily", "denied_calls", "principals_daily", "sensitive_changes")


def test_every_table_is_what_the_files_say(lakelet):
    p = lakelet()
    for late in (False, True):
        for path, content in files(2, 3, 40, seed=1, late=late):
            p.arrive(path, content)
        p.update()
        wanted = expected(p.landing)
        for table in TABLES:
            assert Counter(tuple(row.values()) for row in p.rows(table)) == Counter(wanted[table]), table
