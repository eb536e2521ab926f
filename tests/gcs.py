"""A server that speaks Google Cloud Storage's protocols, on loopback, for tests: fake-gcs-server, built by Go (`gcs_server/main.go`).

By hand: `python -m tests.gcs FOLDER` starts one until Ctrl-C, and prints the variables that lead to it, and an empty bucket.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.servers import address_of, server_process, stay

_SOURCES = Path(__file__).parent / "gcs_server"
_GO = "/usr/local/go/bin/go"


@dataclass
class GoogleServer:
    """`url`: where it listens. `key`: the file with the key of an account. `bucket`: an empty one, or the first path segment of `uri`."""

    url: str
    key: Path
    bucket: str = "lake"

    packages: ClassVar[tuple[str, ...]] = ()
    """What a worker needs beside pyspark and pyarrow to reach it."""

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find and use it; no machine's own credentials."""
        return {"STORAGE_EMULATOR_HOST": self.url, "GOOGLE_APPLICATION_CREDENTIALS": str(self.key)}

    @property
    def secrets(self) -> list[str]:
        """What may stand nowhere: the lines of the private key."""
        return str(json.loads(self.key.read_text())["private_key"]).splitlines()[1:-1]

    def uri(self, path: str = "", scheme: str = "gs") -> str:
        return f"{scheme}://{self.bucket}/{path}"

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self.url}{path}", data=body, method=method, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content

    def make_bucket(self) -> None:
        self.call("POST", "/storage/v1/b", json.dumps({"name": self.bucket}).encode())

    def put(self, path: str, content: bytes | str) -> None:
        """Put one object, as somebody else would: without Lakelet."""
        name = urllib.parse.quote(path, safe="")
        data = content.encode() if isinstance(content, str) else content
        self.call("POST", f"/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={name}", data)

    def objects(self) -> list[str]:
        """All objects of the bucket but those that stand for folders."""
        found: dict[str, Any] = json.loads(self.call("GET", f"/storage/v1/b/{self.bucket}/o"))
        return sorted(item["name"] for item in found.get("items", []) if not item["name"].endswith("/"))

    def content(self, path: str) -> bytes:
        """The bytes of one object."""
        return self.call("GET", f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(path, safe='')}?alt=media")


@contextmanager
def google_server(folder: Path) -> Iterator[GoogleServer]:
    """Build the server, start it on a free port, and end it by its process. `folder` gets it, its log and the key of an account."""
    sources, program, log = folder / "sources", folder / "gcs_server", folder / "gcs.log"
    shutil.copytree(_SOURCES, sources)  # Go writes the digests of what it fetches beside them
    subprocess.run([shutil.which("go") or _GO, "build", "-mod=mod", "-o", str(program), "."], cwd=sources, check=True)
    with server_process([str(program)], log) as process:
        url = address_of(process, log)
        yield GoogleServer(url, _key(folder / "account.json", url))


def _key(file: Path, url: str) -> Path:
    """The file of a made-up service account, whose tokens the server gives."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    account = {
        "type": "service_account",
        "project_id": "lakelet",
        "private_key_id": "1",
        "private_key": private.private_bytes(serialization.Encoding.PEM, form, plain).decode(),
        "client_email": "test@lakelet.test",
        "client_id": "1",
        "token_uri": f"{url}/token",
    }
    file.write_text(json.dumps(account))
    return file


if __name__ == "__main__":
    with google_server(Path(sys.argv[1])) as running:
        running.make_bucket()
        stay(running.uri(), running.environment)
