"""Which names `lakelet preview` takes. No Spark session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.inspection.preview import found_dataset
from lakelet.language.loader import loaded
from lakelet.spark.names.catalog import Catalog
from lakelet.storage.root import ExistingTables, Storage

PIPELINE = """
import dlt

@dlt.table
def orders():
    return None

dlt.create_sink("export", "json", {"path": "out"})
"""


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("Orders", None, "main.default.orders"),
        ("main.default.orders", None, "main.default.orders"),
        ("ordres", "UNKNOWN_DATASET", "Did you mean"),
        ("a..b", "UNKNOWN_DATASET", "defines no 'a..b'"),
        ("export", "PREVIEW_REFUSED", "no flow writes to main.default.export"),
    ],
)
def test_a_name_means_a_dataset_that_flows_write_to(tmp_path: Path, name: str, code: str | None, said: str) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text(PIPELINE)
    with loaded([file], import_roots=[tmp_path], namespace=Namespace("main", "default"), injected={"spark": None}) as found:
        catalog = Catalog.of(found.definitions, Namespace("main", "default"), ExistingTables(Storage(tmp_path / ".lakelet")))
    pipeline: Any = SimpleNamespace(environment=SimpleNamespace(catalog=catalog))
    if code is None:
        assert str(found_dataset(pipeline, name).name) == said
        return
    with pytest.raises(LakeletError, match=said) as refused:
        found_dataset(pipeline, name)
    assert refused.value.code == code
