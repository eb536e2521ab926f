"""A server that speaks the protocol of Azure's Blob Storage, on loopback, for tests: Azurite, which npm fetches once into the cache.

By hand: `python -m tests.azurite FOLDER` starts one until Ctrl-C, and prints the variables that lead to it, and an empty container.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode

from lakelet.spark.launch.environment import cache_folder
from tests.servers import awaited, server_process, stay

_VERSION = "3.37.0"
_PROGRAM = "node_modules/azurite/dist/src/blob/main.js"
_LISTENS = re.compile(r"successfully listens on (http://127\.0\.0\.1:\d+)\s")
_PROTOCOL = "2021-12-02"


@dataclass
class AzureServer:
    """`url`: where it listens. `key`: of the account. `bucket`: an empty container, which `uri` names."""

    url: str
    key: str
    account: str = "laketest"
    bucket: str = "lake"

    packages: ClassVar[tuple[str, ...]] = ()
    """What a worker needs beside pyspark and pyarrow to reach it."""

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find and use it; no machine's own credentials."""
        return {"AZURE_STORAGE_ENDPOINT": f"{self.url}/{self.account}", "AZURE_STORAGE_ACCOUNT_KEY": self.key}

    @property
    def secrets(self) -> list[str]:
        """What may stand nowhere."""
        return [self.key]

    def uri(self, path: str = "", scheme: str = "abfss") -> str:
        return f"{scheme}://{self.bucket}@{self.account}.dfs.core.windows.net/{path}"

    def call(self, method: str, path: str, body: bytes | None = None, *, query: Mapping[str, str] | None = None, **more: str) -> bytes:
        """One request, signed as Azure wants it; `more`: headers without `x-ms-`."""
        headers = {f"x-ms-{name}": value for name, value in {"date": formatdate(usegmt=True), "version": _PROTOCOL, **more}.items()}
        kind = "application/octet-stream" if body is not None else ""
        resource = f"/{self.account}{quote(path)}"
        signed = [method, "", "", str(len(body)) if body else "", "", kind, *[""] * 6]
        signed += [f"{name}:{value}" for name, value in sorted(headers.items())]
        signed += [f"/{self.account}{resource}", *(f"{name}:{value}" for name, value in sorted((query or {}).items()))]
        digest = hmac.digest(base64.b64decode(self.key), "\n".join(signed).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(digest).decode()}"
        url = f"{self.url}{resource}" + (f"?{urlencode(query)}" if query else "")
        request = urllib.request.Request(url, data=body, method=method, headers={**headers, **({"Content-Type": kind} if kind else {})})
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content

    def make_bucket(self) -> None:
        self.call("PUT", f"/{self.bucket}", b"", query={"restype": "container"})

    def put(self, path: str, content: bytes | str) -> None:
        """Put one object, as somebody else would: without Lakelet."""
        data = content.encode() if isinstance(content, str) else content
        self.call("PUT", f"/{self.bucket}/{path}", data, **{"blob-type": "BlockBlob"})

    def put_folder(self, path: str) -> None:
        """Put the object with which Java's driver marks a folder."""
        self.call("PUT", f"/{self.bucket}/{path}", b"", **{"blob-type": "BlockBlob", "meta-hdi_isfolder": "true"})

    def objects(self) -> list[str]:
        """All objects of the container but those that stand for folders."""
        query = {"restype": "container", "comp": "list", "include": "metadata", "maxresults": "5000"}
        blobs = re.findall(r"<Blob>.*?</Blob>", self.call("GET", f"/{self.bucket}", query=query).decode(), re.DOTALL)
        names = [re.findall(r"<Name>(.*?)</Name>", blob)[0] for blob in blobs if "<hdi_isfolder>" not in blob.lower()]
        return sorted(name for name in names if not name.endswith("/"))

    def content(self, path: str) -> bytes:
        """The bytes of one object."""
        return self.call("GET", f"/{self.bucket}/{path}")


@contextmanager
def azure_server(folder: Path) -> Iterator[AzureServer]:
    """Start the server on a free port with an account and a key of its own, and end it by its process. `folder` gets its log."""
    key, log = base64.b64encode(secrets.token_bytes(64)).decode(), folder / "azure.log"
    options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command = ["node", str(_installed() / _PROGRAM), *options, "--disableTelemetry"]
    server = AzureServer("", key)
    with server_process(command, log, {**os.environ, "AZURITE_ACCOUNTS": f"{server.account}:{key}"}) as process:
        server.url = awaited(process, log, lambda: _LISTENS.search(log.read_text(errors="replace")))[1]
        yield server


def _installed() -> Path:
    """The folder with the server; it appears as a whole."""
    folder = cache_folder() / "tests" / f"azurite-{_VERSION}"
    if not (folder / _PROGRAM).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
        options = ["--no-save", "--no-package-lock", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(["npm", "install", "--prefix", str(fresh), *options, f"azurite@{_VERSION}"], cwd=fresh, check=True)
        fresh.rename(folder)
    return folder


if __name__ == "__main__":
    with azure_server(Path(sys.argv[1])) as running:
        running.make_bucket()
        stay(running.uri(), running.environment)
