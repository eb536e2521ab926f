"""Flows with several sources of files (docs/semantics/sources.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.conftest import Project

PIPELINE = """
    import dlt
    from functools import reduce

    def landed(folder, names):
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .option("pathGlobFilter", names).load(f"{{spark.conf.get('landing')}}/{{folder}}"))

    @dlt.table
    def both():
        return reduce(lambda a, b: a.union(b), [landed(*source) for source in {0!r}])
"""
ONE, OTHER, LETTERS = ("one", "*"), ("other", "*"), ("one", "letters*")


@pytest.mark.long
def test_sources_that_change_places_are_refused_and_one_that_moves_is_not(project: Callable[..., Project]) -> None:
    made = project(PIPELINE.format([ONE, OTHER]))
    made.arrive("a.json", {"id": 1}, folder="one")
    made.arrive("a.json", {"id": 2}, folder="other")
    made.run()
    assert made.rows("both") == [1, 2]
    made.write(PIPELINE.format([OTHER, ONE])).run(expect="FAILED")
    assert made.errors() == {"both": "STREAM_SOURCES_CHANGED"}
    assert "/other" in str(made.result.errors[0])
    assert made.rows("both") == [1, 2]

    made.write(PIPELINE.format([ONE, OTHER])).run()
    (made.landing / "one").rename(made.landing / "uno")
    made.arrive("b.json", {"id": 3}, folder="elsewhere")
    made.write(PIPELINE.format([("elsewhere", "*"), OTHER])).run()
    assert made.rows("both") == [1, 2, 3]
    made.write(PIPELINE.format([OTHER, ("elsewhere", "*")])).run(full_refresh=("both",))
    assert made.rows("both") == [2, 3]


@pytest.mark.slow
def test_sources_of_one_folder_are_known_by_their_patterns(project: Callable[..., Project]) -> None:
    numbers = ("one", "numbers*")
    made = project(PIPELINE.format([LETTERS, numbers]))
    made.arrive("letters.json", {"id": 1}, folder="one")
    made.arrive("numbers.json", {"id": 2}, folder="one")
    made.run()
    made.write(PIPELINE.format([numbers, LETTERS])).run(expect="FAILED")
    assert made.errors() == {"both": "STREAM_SOURCES_CHANGED"}
    made.write(PIPELINE.format([LETTERS, ("one", "n*")]))
    made.arrive("news.json", {"id": 3}, folder="one")
    made.run()
    assert made.rows("both") == [1, 2, 3]
