"""Stands in for the Python interpreter where Spark starts one: asks the fork server for the process, and is the interpreter if it cannot.

`fork_client.py SOCKET PYTHON ARGUMENTS…` is run by the little script that `forks.python_executable` writes. It runs with `-IS` and imports
nothing but what is built in, so it is there in a hundredth of a second. Its standard streams, arguments, environment and working folder
become those of the forked process; it ends with that process's exit code, and when it is killed, so is the process.
"""

import _socket
import marshal
import os
import sys

FORKED = b"+"  # what the server says when the process runs; its exit code follows when it has ended


def frame(request: tuple[list[str], dict[str, str], str]) -> bytes:
    """A request on the wire: its length in four bytes, then marshal's bytes (both ends are the same interpreter)."""
    content = marshal.dumps(request)
    return len(content).to_bytes(4, "big") + content


def main() -> None:
    address, python, *arguments = sys.argv[1:]
    if arguments[:1] == ["-m"]:
        code = _exit_code_of_fork(address, arguments[1:])
        if code is not None:
            os._exit(code)
    os.execv(python, [python, *arguments])


def _exit_code_of_fork(address: str, arguments: list[str]) -> int | None:
    """The exit code of the process that the server forked; None when there is no server or it would not."""
    request = frame((arguments, dict(os.environ), os.getcwd()))
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(address)
        sent = connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
        if sent < len(request):
            connection.sendall(request[sent:])
        if connection.recv(1) != FORKED:
            return None
    except OSError:
        return None
    try:
        answer = connection.recv(4)
    except OSError:
        answer = b""
    return int.from_bytes(answer, "big", signed=True) % 256 if answer else 1


if __name__ == "__main__":
    main()
