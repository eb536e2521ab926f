"""How an update is stopped from outside (dlt-semantics 4.3: cancellation_cause)."""

from __future__ import annotations

import signal
import threading

import pytest

from lakelet.stopping import Terminated, cancellation_cause, only_interrupting, stoppable


def test_sigterm_is_like_ctrl_c_inside_the_block_and_as_before_behind_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert isinstance(stopped.value, Terminated)
    assert signal.getsignal(signal.SIGTERM) is before
    assert cancellation_cause(stopped.value) == "WORKFLOW_CANCELLATION"
    assert cancellation_cause(KeyboardInterrupt()) == "USER_ACTION"


def test_another_handler_of_ctrl_c_is_not_called_inside_the_block() -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(1))
    try:
        with pytest.raises(KeyboardInterrupt), only_interrupting():
            signal.raise_signal(signal.SIGINT)
        assert called == []
        signal.raise_signal(signal.SIGINT)
        assert called == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_is_changed() -> None:
    entered: list[int] = []

    def enter() -> None:
        with stoppable(), only_interrupting():
            entered.append(1)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [1]
