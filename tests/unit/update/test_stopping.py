"""How an update is stopped from outside (EL-9)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest

from lakelet.update.stopping import TerminationSignal, cancellation_cause, only_interrupting, stoppable


def test_sigterm_is_like_ctrl_c_inside_the_block_and_as_before_behind_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert isinstance(stopped.value, TerminationSignal)
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


def program(text: str, *, interrupts: tuple[float, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program that says `ready`, interrupt it so many seconds after each other, and wait for its end."""
    process = subprocess.Popen([sys.executable, "-c", dedent(text)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for pause in interrupts:
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, err)


STOPPED_IN_ORDER = """
    import sys, time
    from lakelet.cli.main import guarded
    from lakelet.update.stopping import end_at_next, only_interrupting

    def update():
        with only_interrupting():
            try:
                print("ready", flush=True)
                time.sleep(60)
            finally:
                time.sleep({})
                print("in order", flush=True)

    sys.exit(guarded(update, debug=False, interrupted=end_at_next))
"""


def test_two_quick_interrupts_are_one() -> None:
    ended = program(STOPPED_IN_ORDER.format(1), interrupts=(0.2, 0.1, 0.1))
    assert (ended.returncode, ended.stdout) == (130, "in order\n")
    assert ended.stderr == "Interrupted. What was finished is kept.\n"


def test_an_interrupt_of_somebody_who_waited_ends_the_process_at_once() -> None:
    ended = program(STOPPED_IN_ORDER.format(50), interrupts=(0.2, 2.5))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")  # `in order` would have been said after 50 seconds


def test_a_thread_of_the_pipelines_code_does_not_keep_the_process_alive() -> None:
    ended = program(
        """
        import atexit, sys, threading, time
        from lakelet.cli.main import end_without_threads
        atexit.register(lambda: print("cleaned", flush=True))
        threading.Thread(target=time.sleep, args=(300,), name="poller").start()
        print("ready", flush=True)
        end_without_threads(3, patience=0.5)
        sys.exit(3)
        """
    )
    assert (ended.returncode, ended.stdout) == (3, "cleaned\n")
    assert "still running and end with the process: poller" in ended.stderr


def test_a_thread_that_ends_in_time_is_waited_for() -> None:
    ended = program(
        """
        import sys, threading, time
        from lakelet.cli.main import end_without_threads
        threading.Thread(target=lambda: (time.sleep(0.5), print("done", flush=True))).start()
        print("ready", flush=True)
        end_without_threads(0, patience=20)
        sys.exit(0)
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
