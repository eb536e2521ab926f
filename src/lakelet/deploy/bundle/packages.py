"""Packages of other people: what Databricks' runtime brings, and what a pipeline's environment installs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from lakelet.config.tool_settings import tomllib
from lakelet.config.yaml_tree import Node
from lakelet.deploy.bundle.paths import local_requirements

_RUNTIME = frozenset(
    (
        *("IPython", "azure", "boto3", "botocore", "cachetools", "certifi", "cffi", "chardet", "charset_normalizer", "click"),
        *("cloudpickle", "cryptography", "cycler", "databricks", "dateutil", "dbruntime", "debugpy", "decorator", "delta", "dlt"),
        *("fastapi", "filelock", "fsspec", "git", "google", "grpc", "httplib2", "idna", "importlib_metadata", "ipykernel"),
        *("ipywidgets", "jinja2", "jmespath", "joblib", "kiwisolver", "markupsafe", "matplotlib", "mlflow", "numpy", "oauthlib"),
        *("packaging", "pandas", "patsy", "pexpect", "PIL", "pip", "pkg_resources", "platformdirs", "plotly", "prompt_toolkit"),
        *("protobuf", "psutil", "psycopg2", "py4j", "pyarrow", "pydantic", "pydantic_core", "pygments", "pyodbc", "pyparsing"),
        *("pyspark", "pytz", "requests", "s3transfer", "scipy", "seaborn", "setuptools", "six", "sklearn", "sqlparse"),
        *("statsmodels", "tenacity", "threadpoolctl", "tornado", "traitlets", "typing_extensions", "urllib3", "virtualenv"),
        *("wheel", "zipp"),
    )
)
"""Packages by their import names that the runtime has."""

_DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faker": "faker",
    "fitz": "pymupdf",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "levenshtein": "python-levenshtein",
    "magic": "python-magic",
    "openssl": "pyopenssl",
    "pil": "pillow",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "usb": "pyusb",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Package names of modules that have a different name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_provided(module: str) -> bool:
    """Whether a top-level module comes with Python or with Databricks' runtime."""
    return module in sys.stdlib_module_names or module in _RUNTIME


def distribution_of(module: str) -> str:
    """The name that a top-level module probably has on the package index."""
    return _DISTRIBUTIONS.get(module.lower(), module.replace("_", "-"))


def installed_by(requirements: Iterable[Node]) -> frozenset[str]:
    """Normalized names of what lines for pip install; local files of requirements and local projects are read."""
    return frozenset(name for node in requirements for name in _names(node))


def is_installed(module: str, installed: frozenset[str]) -> bool:
    """Whether one of the installed packages has the module, going by its name."""
    return bool({normalized(distribution_of(module)), normalized(module)} & installed) or any(
        name.startswith(normalized(module) + "-") for name in installed
    )


def projects_of(requirements: Iterable[Node]) -> list[Path]:
    """Folders of local projects that lines for pip install."""
    return [local.path for node in requirements for local in local_requirements(node) if local.path.is_dir()]


def normalized(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _names(node: Node) -> Iterator[str]:
    local = next(local_requirements(node), None)
    if local is None:
        yield from _named(node.text)
    elif local.path.is_dir():
        yield from _of_project(local.path)
    elif local.path.suffix == ".txt" and local.path.is_file():
        for line in local.path.read_text(encoding="utf-8", errors="replace").splitlines():
            yield from _named(line)
    else:
        yield normalized(local.path.name.split("-", 1)[0])


def _named(line: str) -> Iterator[str]:
    """The package that a line installs; nothing for an option or a comment."""
    text = line.strip()
    if text.endswith(".whl") or ".whl" in text.partition("@")[2]:
        yield normalized(text.rpartition("/")[2].split("-", 1)[0])
    elif (match := _NAME.match(text)) is not None:
        yield normalized(match.group())


def _of_project(folder: Path) -> Iterator[str]:
    file = folder / "pyproject.toml"
    if not file.is_file():
        return
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except tomllib.TOMLDecodeError:
        return
    for line in [project.get("name", ""), *project.get("dependencies", [])]:
        yield from _named(line)
