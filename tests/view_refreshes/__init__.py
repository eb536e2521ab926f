"""Random lives of materialized views: inputs change, an update refreshes the views, each stored table is compared with its query.

    tables.py       input tables and their rows, with the values that break engines
    operations.py   what happens to a table between two updates: by Spark, by delta-rs, by files that arrive
    views.py        the views: one pipeline file of them, and the same queries without Lakelet
    oracle.py       the rows that a view must have, and the difference to those it has
    lives.py        one life: a project, its rounds, and what was compared
    tally.py        how many refreshes were compared, by technique
    tpch.py         the same for 22 decision-support queries over eight tables

`python -m tests.view_refreshes --seeds 20` runs lives with each technique forced in turn and prints how many refreshes it compared.
"""
