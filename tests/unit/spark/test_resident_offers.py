"""A session is offered to processes of this user that know its secret, and to nobody else (decision 49)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.jvm.remains import Remains
from lakelet.spark.launch.resident import offers
from lakelet.spark.launch.resident.lending import Lender, _Running
from lakelet.spark.launch.resident.offers import Lent, Offer, Refused, Request

SECRET = "00" * 32


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_offer_can_be_read_by_this_user_alone(cache):
    offer = Offer("/tmp/socket", SECRET, os.getpid())
    file = offers.write_offer(offer)
    assert offers.read_offer() == offer
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_an_offer_of_a_process_that_was_killed_is_removed_by_the_next_one(tmp_path, monkeypatch):
    left = offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid()))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left.write_text(left.read_text().replace(str(os.getpid()), str(ended.pid)))
    monkeypatch.chdir(tmp_path)
    offers.write_offer(Offer("/tmp/other", SECRET, os.getpid()))
    assert not left.exists()


def test_an_offer_is_for_one_folder(tmp_path, monkeypatch):
    offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid()))
    monkeypatch.chdir(tmp_path)
    assert offers.read_offer() is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660], ids=oct)
def test_an_offer_that_others_may_read_or_write_does_not_count(mode):
    offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid())).chmod(mode)
    assert offers.read_offer() is None


def test_nothing_is_offered_in_a_folder_that_others_can_look_into(cache):
    offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid())).parent.chmod(0o755)
    assert offers.read_offer() is None
    with pytest.raises(PermissionError):
        offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid()))


def test_a_link_is_no_offer(tmp_path):
    file = offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid()))
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert offers.read_offer() is None


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "address": "/a"}', "no JSON"])
def test_an_offer_of_another_form_does_not_count(text):
    offers.write_offer(Offer("/tmp/socket", SECRET, os.getpid())).write_text(text)
    assert offers.read_offer() is None


def test_a_session_whose_process_is_gone_gives_no_connection(tmp_path):
    assert offers.connected(Offer(str(tmp_path / "socket"), SECRET, os.getpid())) is None


@pytest.mark.parametrize(
    "message",
    [Request(SECRET, 1, {"a": "b" * 100_000}), Lent(1, "s", "/p"), Refused(None), Refused("ü")],
    ids=["request", "lent", "in use", "refused"],
)
def test_a_message_comes_out_as_it_was_sent_and_takes_nothing_behind_it(message):
    here, there = socket.socketpair()
    with here, there:
        sending = threading.Thread(target=lambda: (offers.send(here, message), here.sendall(b".")))
        sending.start()
        assert offers.receive(there) == message
        sending.join()
        assert there.recv(10) == b"."


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b"no JSON\n", b'{"format": 2, "kind": "Lent"}\n', b'{"format": 1, "kind": "Other"}\n', b'{"format"']
)
def test_what_is_no_message_is_none(line):
    here, there = socket.socketpair()
    with there:
        with here:
            here.sendall(line)
        assert offers.receive(there) is None


@pytest.fixture
def lender(tmp_path) -> Iterator[Lender]:
    """One that has offered a session whose Java is a process that waits."""
    found = Lender()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        folder = tmp_path / "s"
        folder.mkdir()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(folder / "socket"))
        listener.listen(1)
        file = offers.write_offer(Offer(str(folder / "socket"), found._secret, os.getpid()))
        found._running = _Running(java, {"a": "1"}, Lent(1, "s", "/p"), Remains(None), listener, folder, file)
        threading.Thread(target=found._serve, args=(found._running,), daemon=True).start()
        yield found
        found.end("the test is over")


def asked(secret: str | None = None, **facts: str) -> Request | Lent | Refused | None:
    offer = offers.read_offer()
    assert offer is not None
    connection = offers.connected(offer)
    assert connection is not None
    with connection:
        offers.send(connection, Request(secret or offer.secret, os.getpid(), facts))
        return offers.receive(connection)


def test_who_does_not_know_the_secret_gets_no_answer(lender):
    assert asked(secret=SECRET, a="1") is None


def test_a_command_that_differs_is_told_why_and_the_session_goes_on(lender):
    assert asked(a="2") == Refused("a is not what it was started with")
    assert asked(a="1", b="2") == Refused("b is not what it was started with")


def test_a_session_in_use_is_refused_without_a_word(lender, monkeypatch):
    monkeypatch.setattr("lakelet.spark.launch.resident.lending._BUSY_SECONDS", 0.05)
    with lender._in_use:
        assert asked(a="1") == Refused(None)


def test_a_session_that_is_over_is_not_offered(lender):
    lender.end("the test is over")
    assert offers.read_offer() is None


def test_java_ends_after_idle_time_and_the_next_turn_needs_a_new_process(lender):
    idle = replace(lender._running)
    lender.clock = lambda: lender._used + lender._idle_seconds + 1
    lender.check()
    assert idle.java.poll() is not None
    lender.check()
    with pytest.raises(Exception, match="idle"), lender.turn():
        raise AssertionError("there is no session")
