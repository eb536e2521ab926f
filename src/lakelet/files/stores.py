"""The kinds of store that a URI may name, one value for each: its schemes, what its clients need, and whether a storage may lie there.

Address and region come from the environment of the process, as do the credentials, which are in no option, no URI, no stored file.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_GIVE_UP = timedelta(seconds=15)
"""After so long pyarrow stops asking a store of Google's again; by itself it goes on for 15 minutes."""


@dataclass(frozen=True)
class StoreSettings(ABC):
    """What the clients of one kind of store are told, without credentials. `S3Settings` and the others say what is special."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> StoreSettings:
        """The settings of an environment."""
        return cls()

    def variables(self) -> dict[str, str]:
        """The environment of a process that must find the same store."""
        return {}

    def delta_options(self) -> dict[str, str]:
        """Storage options for delta-rs, which takes the credentials from the environment itself."""
        return {}

    def spark_settings(self) -> dict[str, str]:
        """Spark settings for its file system. The keys come from the environment of each Java process."""
        return {}

    def class_path(self) -> tuple[str, ...]:
        """Folders whose files Java's client reads."""
        return ()

    @abstractmethod
    def file_system(self, authority: str) -> Any:
        """pyarrow's file system for what stands between `//` and the path of a URI."""


@dataclass(frozen=True)
class S3Settings(StoreSettings):
    """Address of S3. `endpoint` is a URL, None for Amazon's own."""

    endpoint: str | None
    region: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> S3Settings:
        """From `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, and `AWS_REGION` or `AWS_DEFAULT_REGION`."""
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or None
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else None)
        return cls(endpoint, region)

    def variables(self) -> dict[str, str]:
        pairs = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region}
        return {name: value for name, value in pairs.items() if value}

    def delta_options(self) -> dict[str, str]:
        return {**self.variables(), **({"AWS_ALLOW_HTTP": "true"} if _is_plain(self.endpoint) else {})}

    def spark_settings(self) -> dict[str, str]:
        found = {f"fs.{scheme}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem" for scheme in S3.schemes}
        if self.region:
            found["fs.s3a.endpoint.region"] = self.region
        if self.endpoint:
            found["fs.s3a.endpoint"] = self.endpoint
            found["fs.s3a.path.style.access"] = "true"
            found["fs.s3a.connection.ssl.enabled"] = str(not _is_plain(self.endpoint)).lower()
        return {f"spark.hadoop.{key}": value for key, value in found.items()}

    def file_system(self, authority: str) -> Any:
        from pyarrow import fs

        region = self.region or fs.resolve_s3_region(authority)
        return fs.S3FileSystem(region=region, allow_delayed_open=True, **_endpoint_of(self.endpoint))

    def __str__(self) -> str:
        return f"{self.endpoint or 'Amazon'}, region {self.region or 'not set'}"


@dataclass(frozen=True)
class GoogleSettings(StoreSettings):
    """Address of Google Cloud Storage. `endpoint` is a URL, None for Google's own."""

    endpoint: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> GoogleSettings:
        """From `STORAGE_EMULATOR_HOST`, as Google's own libraries do."""
        named = environ.get("STORAGE_EMULATOR_HOST")
        return cls((named if "://" in named else f"http://{named}").rstrip("/") if named else None)

    def variables(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": self.endpoint} if self.endpoint else {}

    def delta_options(self) -> dict[str, str]:
        found = {"google_base_url": self.endpoint} if self.endpoint else {}
        return {**found, **({"allow_http": "true"} if _is_plain(self.endpoint) else {})}

    def spark_settings(self) -> dict[str, str]:
        connector = "com.google.cloud.hadoop.fs.gcs"
        found = {
            "fs.gs.impl": f"{connector}.GoogleHadoopFileSystem",
            "fs.AbstractFileSystem.gs.impl": f"{connector}.GoogleHadoopFS",
            "fs.gs.auth.type": "APPLICATION_DEFAULT",
            "fs.gs.block.size": str(64 << 20),  # Hadoop 3.5 has a default of its own, in a form that the connector does not read
        }
        if self.endpoint:
            found["fs.gs.storage.root.url"] = f"{self.endpoint}/"
        return {f"spark.hadoop.{key}": value for key, value in found.items()}

    def file_system(self, authority: str) -> Any:
        from pyarrow import fs

        return fs.GcsFileSystem(retry_time_limit=_GIVE_UP, **_endpoint_of(self.endpoint))

    def __str__(self) -> str:
        return self.endpoint or "Google"


_ABFS = "org.apache.hadoop.fs.azurebfs"
_AZURE_LOGINS: Mapping[str, Mapping[str, str]] = {
    "AZURE_STORAGE_ACCOUNT_KEY": {
        "fs.azure.account.auth.type": "SharedKey",
        "fs.azure.account.key": "${env.AZURE_STORAGE_ACCOUNT_KEY}",
    },
    "AZURE_CLIENT_SECRET": {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"{_ABFS}.oauth2.ClientCredsTokenProvider",
        "fs.azure.account.oauth2.client.id": "${env.AZURE_CLIENT_ID}",
        "fs.azure.account.oauth2.client.secret": "${env.AZURE_CLIENT_SECRET}",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/${env.AZURE_TENANT_ID}/oauth2/token",
    },
    "": {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"{_ABFS}.oauth2.MsiTokenProvider",
    },
}
"""What Java's driver shows, by the variable with which it counts; without any the machine's identity. Hadoop puts the value of a variable
in place of `${env.NAME}` where it is asked for one, so no setting holds a credential."""


@dataclass(frozen=True)
class AzureSettings(StoreSettings):
    """Address of Azure's store; the account stands in the URI.

    Attributes:
        endpoint: the URL of another server, which ends with the account; None for Azure's own.
        login: the variable with what Java's driver shows; empty for the identity of the machine.
    """

    endpoint: str | None
    login: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> AzureSettings:
        """From `AZURE_STORAGE_ENDPOINT`, if it has a path, and from which credentials there are."""
        named = (environ.get("AZURE_STORAGE_ENDPOINT") or "").rstrip("/")
        login = next((variable for variable in _AZURE_LOGINS if environ.get(variable)), "")
        return cls(named if "/" in named.partition("://")[2] else None, login)

    def variables(self) -> dict[str, str]:
        return {"AZURE_STORAGE_ENDPOINT": self.endpoint} if self.endpoint else {}

    def delta_options(self) -> dict[str, str]:
        found = {"azure_storage_endpoint": self.endpoint} if self.endpoint else {}
        return {**found, **({"allow_http": "true"} if _is_plain(self.endpoint) else {})}

    def spark_settings(self) -> dict[str, str]:
        found = {
            "fs.azure.ssl.channel.mode": "Default_JSSE_with_GCM",  # Java's own, which needs no further jar
            **_AZURE_LOGINS[self.login],
        }
        committers = "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
        for scheme in AZURE.schemes:  # Hadoop's own choice for Azure works only with classes that pyspark does not have
            found[f"mapreduce.outputcommitter.factory.scheme.{scheme}"] = committers
        if self.endpoint:
            found["fs.azure.abfs.endpoint"] = self.host
            found["fs.azure.account.hns.enabled"] = "false"
            found["fs.azure.fns.account.service.type"] = "BLOB"
        if _is_plain(self.endpoint):
            found["fs.azure.always.use.https"] = "false"
            found["fs.azure.networking.library"] = "JDK_HTTP_URL_CONNECTION"  # the other one wants TLS
            found["fs.abfss.impl"] = f"{_ABFS}.AzureBlobFileSystem"
        return {f"spark.hadoop.{key}": value for key, value in found.items()}

    @property
    def host(self) -> str:
        """Host and port of the endpoint; empty without one."""
        scheme, _, rest = (self.endpoint or "").rpartition("://")
        host = rest.partition("/")[0]
        return host if ":" in host or not host else f"{host}:{80 if scheme == 'http' else 443}"

    def file_system(self, authority: str) -> Any:
        from pyarrow import fs

        account = authority.partition("@")[2].partition(".")[0]
        if not account:
            raise OSError("it names no account: write abfss://<container>@<account>.dfs.core.windows.net/<path>")
        scheme = "http" if _is_plain(self.endpoint) else "https"
        names = [f"{service}_storage_{part}" for part in ("authority", "scheme") for service in ("blob", "dfs")]
        server = dict(zip(names, (self.host, self.host, scheme, scheme), strict=True)) if self.endpoint else {}
        return fs.AzureFileSystem(account_name=account, account_key=os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"), **server)

    def __str__(self) -> str:
        return self.endpoint or "Azure"


@dataclass(frozen=True)
class HadoopSettings(StoreSettings):
    """HDFS; the name node stands in the URI, or a name that files of the user's give addresses to.

    Attributes:
        folder: with `core-site.xml` and `hdfs-site.xml`; None without.
        user: who asks, where the name node believes it; None for the user of the process.
    """

    folder: str | None
    user: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> HadoopSettings:
        """From `HADOOP_CONF_DIR`, else the folder below `HADOOP_HOME`, and `HADOOP_USER_NAME`."""
        home = environ.get("HADOOP_HOME")
        folder = environ.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else None)
        return cls(folder, environ.get("HADOOP_USER_NAME") or None)

    def variables(self) -> dict[str, str]:
        return {"HADOOP_USER_NAME": self.user} if self.user else {}

    def delta_options(self) -> dict[str, str]:
        return self._patience()

    def class_path(self) -> tuple[str, ...]:
        return (self.folder,) if self.folder else ()

    def file_system(self, authority: str) -> Any:
        from lakelet.files.hdfs import HdfsFileSystem

        return HdfsFileSystem(authority, self._patience())

    def _patience(self) -> dict[str, str]:
        """Without files of the user's a name node that does not answer is asked a few times, by default for three minutes."""
        return {} if self.folder else {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "4000"}

    def __str__(self) -> str:
        return f"user {self.user or 'of the process'}, {f'settings in {self.folder}' if self.folder else 'no HADOOP_CONF_DIR'}"


def _is_plain(endpoint: str | None) -> bool:
    return bool(endpoint and endpoint.startswith("http:"))


def _endpoint_of(endpoint: str | None) -> dict[str, str]:
    """pyarrow's arguments for a URL."""
    scheme, _, host = (endpoint or "").rpartition("://")
    return {"scheme": scheme or "https", "endpoint_override": host.rstrip("/")} if host else {}


@dataclass(frozen=True)
class StoreKind:
    """One kind of store.

    Attributes:
        name: what people call it.
        schemes: of its URIs; the first is the one that Spark knows, under which the others mean the same place.
        settings: reads its address from an environment.
        prefixes: how the names of the environment's variables begin that hold credentials for it, or what goes with them.
        folder: the user's folder that may hold credentials instead.
        files: of variables that name a file with credentials, each with the file that counts without it.
        keys: the variables that hold, or name, the credentials.
        address: the variables that say where it is.
        whole: a file appears when its stream is closed, never before, so that a write needs no other name first.
        bucket: a URI names a bucket before the path.
        renames: it has folders, and a rename is one step, which is refused where the name is taken, if so asked (`move_new`).
        markers: Java's driver marks folders with empty files, which pyarrow takes for files.
        jars: the jars with which Spark writes there, by their name in `STORE_PACKAGES`; None where Spark's own do.
        package: of Python, with which it is read where pyarrow alone cannot.
        storage: a storage may lie there.
    """

    name: str
    schemes: tuple[str, ...]
    settings: type[StoreSettings]
    prefixes: tuple[str, ...] = ()
    folder: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    address: tuple[str, ...] = ()
    whole: bool = False
    bucket: bool = True
    renames: bool = False
    markers: bool = False
    jars: str | None = None
    package: str | None = None
    storage: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """What to look at in the environment when it refuses."""
        return (*self.keys, *self.address)

    def is_set_up(self, environ: Mapping[str, str]) -> bool:
        """Whether this machine has credentials for it; without them pyarrow waits for the network in vain."""
        named = bool(self.prefixes) and any(name.startswith(self.prefixes) for name in environ)
        return named or (self.folder is not None and os.path.exists(os.path.expanduser(self.folder)))

    def identity(self, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What separates those who must not share an open file system."""
        return tuple(sorted((name, value) for name, value in environ.items() if self.prefixes and name.startswith(self.prefixes)))

    def credential_files(self, environ: Mapping[str, str]) -> list[str]:
        """The files that its clients read once per process."""
        return [environ.get(variable) or os.path.expanduser(file) for variable, file in self.files]


S3 = StoreKind(
    "S3",
    ("s3a", "s3", "s3n"),
    S3Settings,
    prefixes=("AWS_",),
    folder="~/.aws",
    files=(("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config")),
    keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    address=("AWS_ENDPOINT_URL", "AWS_REGION"),
    whole=True,
    jars="s3",
    storage=True,
)
GOOGLE = StoreKind(
    "Google Cloud Storage",
    ("gs",),
    GoogleSettings,
    prefixes=("GOOGLE_", "GCE_"),
    folder="~/.config/gcloud",
    files=(("GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),),
    keys=("GOOGLE_APPLICATION_CREDENTIALS",),
    address=("STORAGE_EMULATOR_HOST",),
    whole=True,
    jars="gs",
    storage=True,
)
AZURE = StoreKind(
    "Azure",
    ("abfs", "abfss"),  # both with TLS, unless the endpoint is without; Java's driver takes TLS for the second one whatever is set
    AzureSettings,
    prefixes=("AZURE_",),
    folder="~/.azure",
    keys=("AZURE_STORAGE_ACCOUNT_KEY",),
    address=("AZURE_STORAGE_ENDPOINT",),
    markers=True,
    jars="azure",
    storage=True,
)
HDFS = StoreKind(
    "HDFS",
    ("hdfs",),
    HadoopSettings,
    prefixes=("HADOOP_", "KRB5"),
    address=("HADOOP_CONF_DIR", "HADOOP_USER_NAME"),
    bucket=False,
    renames=True,
    package="hdfs-native",
    storage=True,
)

KINDS = (S3, GOOGLE, AZURE, HDFS)
SCHEMES = tuple(scheme for kind in KINDS for scheme in kind.schemes)
_BY_SCHEME = {scheme: kind for kind in KINDS for scheme in kind.schemes}


def scheme_of(location: str) -> str | None:
    """The scheme of a URI in lower case; None for a path. One letter before a colon is not a scheme."""
    found = _SCHEME.match(location)
    return found[1].lower() if found else None


def kind_of(location: object) -> StoreKind | None:
    """The kind of store of a location (text or anything that prints as one); None for this machine, and where it is not known."""
    return _BY_SCHEME.get(scheme_of(str(location)) or "")


def stores_of(*locations: object) -> tuple[StoreKind, ...]:
    """The kinds of store where some of the locations lie and where a storage may lie, each once."""
    found = (kind_of(location) for location in locations)
    return tuple(dict.fromkeys(kind for kind in found if kind is not None and kind.storage))


def is_set_up(scheme: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether this machine has credentials for the stores of a scheme."""
    kind = _BY_SCHEME.get(scheme)
    return kind is not None and kind.is_set_up(os.environ if environ is None else environ)


def delta_options(location: object) -> dict[str, str] | None:
    """Storage options with which delta-rs opens a table there; None where it needs none."""
    kind = kind_of(location)
    return kind.settings.of(os.environ).delta_options() or None if kind is not None else None
