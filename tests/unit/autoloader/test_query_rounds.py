"""A source that plans in rounds, and the update that says when one begins (docs/decisions/0050-kept-queries.md)."""

from __future__ import annotations

import threading

from lakelet.autoloader.continuous_rounds import QueryRounds, SourceRounds


class Stream:
    """Asks for batches as Spark does, in a thread; `files` are those that wait. `coming`: so many more come with each batch."""

    def __init__(self, rounds: QueryRounds, files: int, *, coming: int = 0) -> None:
        self.files, self.listed, self.coming = files, 0, coming
        self.batches, self.asked, self.stopped = 0, 0, False
        source = SourceRounds(rounds.address, self._begin)
        self._thread = threading.Thread(target=self._ask, args=(source,), daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        self.listed = self.files

    def _ask(self, source: SourceRounds) -> None:
        while not self.stopped:
            self.batches = source.plan(self.batches, self._plan)

    def _plan(self) -> int:
        self.asked += 1
        if not self.listed:
            return self.batches
        self.listed -= 1
        self.files += self.coming - 1
        return self.batches + 1

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join(10)


def test_a_round_reads_what_is_there_and_nothing_is_listed_until_the_next_one() -> None:
    rounds = QueryRounds()
    stream = Stream(rounds, files=2)
    assert rounds.ended(stream.is_alive)
    assert (stream.batches, stream.asked) == (2, 3)
    stream.files = 1
    rounds.begin()
    assert rounds.ended(stream.is_alive)
    assert (stream.batches, stream.asked) == (3, 5)
    rounds.begin()
    assert rounds.ended(stream.is_alive)
    assert (stream.batches, stream.asked) == (3, 6)
    stream.stopped = True
    rounds.close()
    stream.join()
    assert not stream.is_alive()
    assert stream.asked == 6


def test_a_round_ends_while_files_keep_coming() -> None:
    rounds = QueryRounds()
    stream = Stream(rounds, files=2, coming=1)
    for batches in (2, 4):
        assert rounds.ended(stream.is_alive)
        assert (stream.batches, stream.files) == (batches, 2)
        rounds.begin()
    stream.stopped = True
    rounds.close()
    stream.join()


def test_a_round_whose_time_is_over_ends_after_its_batch_and_the_next_one_goes_on() -> None:
    rounds = QueryRounds()
    seconds = iter(range(100))
    source = SourceRounds(rounds.address, lambda: None, seconds=3.0, clock=lambda: float(next(seconds)))
    ended = threading.Thread(target=rounds.ended, args=(lambda: True,))
    ended.start()
    batches = [source.plan(0, lambda: 1), source.plan(1, lambda: 2), source.plan(2, lambda: 3)]
    assert batches == [1, 2, 3]
    rounds_left = threading.Thread(target=lambda: batches.append(source.plan(3, lambda: 4)))
    rounds_left.start()
    ended.join(10)
    assert not ended.is_alive()
    assert batches == [1, 2, 3]
    rounds.begin()
    rounds_left.join(10)
    assert batches == [1, 2, 3, 3]
    assert source.plan(3, lambda: 4) == 4
    rounds.close()


def test_a_query_that_ends_ends_its_round() -> None:
    rounds = QueryRounds()
    assert not rounds.ended(lambda: False)
    source = SourceRounds(rounds.address, lambda: None)
    left = iter([True, True, False])
    source._update.close()  # its process was killed
    assert not rounds.ended(lambda: next(left))
    rounds.begin()
    rounds.close()
