"""Packages of other people: the distribution that installs a module, and names as a package index compares them. Pure."""

from __future__ import annotations

import re

DISTRIBUTIONS = {
    "attr": "attrs",
    "azure.identity": "azure-identity",
    "azure.keyvault.secrets": "azure-keyvault-secrets",
    "azure.storage.blob": "azure-storage-blob",
    "azure.storage.filedatalake": "azure-storage-file-datalake",
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "databricks.feature_engineering": "databricks-feature-engineering",
    "databricks.labs.dqx": "databricks-labs-dqx",
    "databricks.sdk": "databricks-sdk",
    "databricks.sql": "databricks-sql-connector",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "PyMuPDF",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.storage": "google-cloud-storage",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "Levenshtein": "python-levenshtein",
    "magic": "python-magic",
    "OpenSSL": "pyopenssl",
    "PIL": "Pillow",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "usb": "pyusb",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
} | {
    name: name.replace("_", "-")
    for name in (
        *("aiohttp", "boto3", "botocore", "chardet", "cryptography", "dbldatagen", "deltalake", "duckdb", "faker", "fastapi"),
        *("fsspec", "geopandas", "great_expectations", "h3", "httpx", "jinja2", "joblib", "jsonschema", "langchain"),
        *("lightgbm", "loguru", "matplotlib", "mlflow", "networkx", "nltk", "numpy", "openai", "openpyxl", "pandas", "pandera"),
        *("paramiko", "polars", "pyarrow", "pydantic", "pymongo", "pytest", "pytz", "rapidfuzz", "requests", "s3fs", "scipy"),
        *("seaborn", "shapely", "simplejson", "sqlalchemy", "sqlglot", "statsmodels", "tenacity", "tiktoken", "toml", "tqdm"),
        *("transformers", "urllib3", "xgboost", "xlrd", "xmltodict"),
    )
}
"""Distributions by the module that they install. None of them is a guess: `pip install` is proposed for them."""


def normalized(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
