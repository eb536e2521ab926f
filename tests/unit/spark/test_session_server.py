"""A session is served to processes of this user that know its secret, and to nobody else (decision 49)."""

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

from lakelet.jvm.leftovers import Leftovers
from lakelet.spark.launch.resident import protocol
from lakelet.spark.launch.resident.protocol import ServerAddress, SessionAccess, SessionRefusal, SessionRequest
from lakelet.spark.launch.resident.server import SessionServer, _ServedSession

SECRET = "00" * 32


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_address_can_be_read_by_this_user_alone(cache):
    address = ServerAddress("/tmp/socket", SECRET, os.getpid())
    file = protocol.write_address(address)
    assert protocol.read_address() == address
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_an_address_of_a_process_that_was_killed_is_removed_by_the_next_one(tmp_path, monkeypatch):
    left = protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid()))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left.write_text(left.read_text().replace(str(os.getpid()), str(ended.pid)))
    monkeypatch.chdir(tmp_path)
    protocol.write_address(ServerAddress("/tmp/other", SECRET, os.getpid()))
    assert not left.exists()


def test_an_address_is_for_one_folder(tmp_path, monkeypatch):
    protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid()))
    monkeypatch.chdir(tmp_path)
    assert protocol.read_address() is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660], ids=oct)
def test_an_address_that_others_may_read_or_write_does_not_count(mode):
    protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid())).chmod(mode)
    assert protocol.read_address() is None


def test_nothing_is_served_in_a_folder_that_others_can_look_into(cache):
    protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid())).parent.chmod(0o755)
    assert protocol.read_address() is None
    with pytest.raises(PermissionError):
        protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid()))


def test_a_link_is_no_address(tmp_path):
    file = protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid()))
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert protocol.read_address() is None


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "address": "/a"}', "no JSON"])
def test_an_address_of_another_form_does_not_count(text):
    protocol.write_address(ServerAddress("/tmp/socket", SECRET, os.getpid())).write_text(text)
    assert protocol.read_address() is None


def test_a_session_whose_process_is_gone_gives_no_connection(tmp_path):
    assert protocol.connected(ServerAddress(str(tmp_path / "socket"), SECRET, os.getpid())) is None


@pytest.mark.parametrize(
    "message",
    [SessionRequest(SECRET, 1, {"a": "b" * 100_000}), SessionAccess(1, "s", "/p"), SessionRefusal(None), SessionRefusal("ü")],
    ids=["request", "access", "in use", "refused"],
)
def test_a_message_comes_out_as_it_was_sent_and_takes_nothing_behind_it(message):
    here, there = socket.socketpair()
    with here, there:
        sending = threading.Thread(target=lambda: (protocol.send(here, message), here.sendall(b".")))
        sending.start()
        assert protocol.receive(there) == message
        sending.join()
        assert there.recv(10) == b"."


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b"no JSON\n", b'{"format": 2, "kind": "SessionAccess"}\n', b'{"format": 1, "kind": "Other"}\n', b'{"format"']
)
def test_what_is_no_message_is_none(line):
    here, there = socket.socketpair()
    with there:
        with here:
            here.sendall(line)
        assert protocol.receive(there) is None


@pytest.fixture
def server(tmp_path) -> Iterator[SessionServer]:
    """The server of a session whose Java is a process that waits."""
    found = SessionServer()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        folder = tmp_path / "s"
        folder.mkdir()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(folder / "socket"))
        listener.listen(1)
        file = protocol.write_address(ServerAddress(str(folder / "socket"), found._secret, os.getpid()))
        found._running = _ServedSession(java, {"a": "1"}, None, SessionAccess(1, "s", "/p"), Leftovers(None), listener, folder, file)
        threading.Thread(target=found._accept_commands, args=(found._running,), daemon=True).start()
        yield found
        found.end("the test is over")


def asked(secret: str | None = None, **facts: str) -> SessionRequest | SessionAccess | SessionRefusal | None:
    address = protocol.read_address()
    assert address is not None
    connection = protocol.connected(address)
    assert connection is not None
    with connection:
        protocol.send(connection, SessionRequest(secret or address.secret, os.getpid(), facts))
        return protocol.receive(connection)


def test_who_does_not_know_the_secret_gets_no_answer(server):
    assert asked(secret=SECRET, a="1") is None


def test_a_command_that_differs_gets_the_reason_and_the_session_goes_on(server):
    assert asked(a="2") == SessionRefusal("a is not what it was started with")
    assert asked(a="1", b="2") == SessionRefusal("b is not what it was started with")


def test_variables_that_only_code_reads_are_not_compared_unless_java_has_other_code(server, monkeypatch):
    monkeypatch.setattr("lakelet.spark.launch.resident.server._BUSY_SECONDS", 0.05)
    with server._in_use:
        assert asked(**{"a": "1", "the environment variable SHOP": "2"}) == SessionRefusal(None)
        refused = asked(**{"a": "1", "the environment variable TZ": "2"})
        assert isinstance(refused, SessionRefusal)
        assert refused.why.startswith("the environment variable TZ is set here only. These count: SPARK_*, ")
        server._running.foreign = "the jar a.jar"
        refused = asked(**{"a": "1", "the environment variable SHOP": "2"})
    assert refused == SessionRefusal("the environment variable SHOP is set here only, and every variable counts because of the jar a.jar")


def test_a_session_in_use_is_refused_without_a_word(server, monkeypatch):
    monkeypatch.setattr("lakelet.spark.launch.resident.server._BUSY_SECONDS", 0.05)
    with server._in_use:
        assert asked(a="1") == SessionRefusal(None)


def test_a_session_that_is_over_is_not_served(server):
    server.end("the test is over")
    assert protocol.read_address() is None


def test_java_ends_after_idle_time_and_the_next_turn_needs_a_new_process(server):
    idle = replace(server._running)
    server.clock = lambda: server._used + server._idle_seconds + 1
    server.check()
    assert idle.java.poll() is not None
    server.check()
    with pytest.raises(Exception, match="idle"), server.turn():
        raise AssertionError("there is no session")
