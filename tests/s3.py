"""A server that speaks S3's protocol, on loopback, for tests: moto in a process of its own.

By hand: `python -m tests.s3 FOLDER` starts one until Ctrl-C, and prints the variables that lead to it, and an empty bucket.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from tests.servers import address_of, server_process, stay


@dataclass
class S3Server:
    """`url`: where it listens. `bucket`: an empty one, or the first path segment of `uri`."""

    url: str
    bucket: str = "lake"

    packages: ClassVar[tuple[str, ...]] = ()
    """What a worker needs beside pyspark and pyarrow to reach it."""

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find and use it; no machine's own credentials."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "very-secret-word",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def secrets(self) -> list[str]:
        """What may stand nowhere."""
        return [self.environment["AWS_SECRET_ACCESS_KEY"]]

    def uri(self, path: str = "", scheme: str = "s3a") -> str:
        return f"{scheme}://{self.bucket}/{path}"

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/octet-stream", "Authorization": "AWS test:unsigned"}  # moto checks that there is one
        request = urllib.request.Request(f"{self.url}{path}", data=body, method=method, headers=headers)
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content

    def make_bucket(self) -> None:
        self.call("PUT", f"/{self.bucket}")

    def put(self, path: str, content: bytes | str) -> None:
        """Put one object, as somebody else would: without Lakelet."""
        self.call("PUT", f"/{self.bucket}/{path}", content.encode() if isinstance(content, str) else content)

    def upload(self, folder: Path, path: str) -> None:
        """Put every file below a folder of this machine."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.put(f"{path}/{file.relative_to(folder).as_posix()}", file.read_bytes())

    def objects(self) -> list[str]:
        """All objects of the bucket."""
        text = self.call("GET", f"/{self.bucket}?list-type=2&max-keys=100000").decode()
        return re.findall(r"<Key>(.*?)</Key>", text)

    def content(self, path: str) -> bytes:
        """The bytes of one object."""
        return self.call("GET", f"/{self.bucket}/{quote(path)}")

    @contextmanager
    def recorded(self) -> Iterator[list[tuple[str, str]]]:
        """The (method, path) of each request made meanwhile; filled at the end."""
        found: list[tuple[str, str]] = []
        self.call("POST", "/moto-api/recorder/reset-recording", b"")
        self.call("POST", "/moto-api/recorder/start-recording", b"")
        yield found
        self.call("POST", "/moto-api/recorder/stop-recording", b"")
        lines = self.call("GET", "/moto-api/recorder/download-recording").decode().splitlines()
        entries: list[Any] = [json.loads(line) for line in lines]
        found += [(entry["method"], entry["url"].removeprefix(self.url)) for entry in entries]


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Start the server on a free port, and end it by its process. `folder` gets its log and its recordings."""
    log = folder / "s3.log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    environment = {**os.environ, "MOTO_RECORDER_FILEPATH": str(folder / "recording")}
    with server_process(command, log, environment) as process:
        yield S3Server(address_of(process, log))


if __name__ == "__main__":
    with s3_server(Path(sys.argv[1])) as running:
        running.make_bucket()
        stay(running.uri(), running.environment)
