"""What a name in user code means: one order for `spark.table` and its kin and for SQL text, in functions of datasets and outside of them.

`Place` has the order. Outside of functions the pipeline's datasets are tables of the storage: what the last update left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import TableName, all_quoted
from lakelet.language.model import Dataset
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.held import is_view
from lakelet.spark.names.information import information
from lakelet.spark.names.named_tables import open_outside
from lakelet.spark.names.outside import held, named
from lakelet.storage.information_schema import asked_for


class Place(Enum):
    """Where a name leads to, the first place first."""

    DATASET = "a dataset of the pipeline whose function reads it"
    NO_DATASET = "a name with LIVE before it that no dataset has"
    QUARANTINE = "a quarantine, which no query reads"
    OUTSIDE = "a table from outside (--table), or one that code made"
    STORED = "another table of the storage"
    INFORMATION = "a relation of information_schema"
    SPARK = "files, or whatever Spark knows"


@dataclass(frozen=True)
class Meaning:
    """What a name means.

    Attributes:
        place: where it leads to.
        name: the full name; None for what is not a name of one to three parts.
        dataset: the dataset, where the place is one.
    """

    place: Place
    name: TableName | None
    dataset: Dataset | None = None


def meaning(
    parts: Sequence[str], catalog: Catalog | None, *, streaming: bool = False, hidden: Callable[[str], bool] = lambda name: False
) -> Meaning:
    """Return what the parts of a name mean.

    Args:
        parts: the parts, without quotes.
        catalog: the names that the function of a dataset can mean; None outside of functions.
        streaming: whether it is read as a stream; outside of functions there is none of a stored table.
        hidden: whether a view of the session has a name of one part; outside of functions it hides a stored table.
    """
    name = held().full_name(all_quoted(parts)) if catalog is None else catalog.find(parts)
    if catalog is not None:
        dataset = catalog.dataset(parts)
        if dataset is not None and not catalog.is_foreign(dataset.name):
            return Meaning(Place.DATASET, dataset.name, dataset)
        if parts[0].lower() == "live":
            return Meaning(Place.NO_DATASET, name)
    if name is None:
        return Meaning(Place.SPARK, None)
    if catalog is not None and name.key in catalog.quarantines:
        return Meaning(Place.QUARANTINE, name)
    if name.key in named():
        return Meaning(Place.OUTSIDE, name)
    if name.key in catalog.other_tables if catalog is not None else _is_held(name, streaming, parts, hidden):
        return Meaning(Place.STORED, name)
    if held().storage is not None and asked_for(name) is not None:
        return Meaning(Place.INFORMATION, name)
    return Meaning(Place.SPARK, name)


def _is_held(name: TableName, streaming: bool, parts: Sequence[str], hidden: Callable[[str], bool]) -> bool:
    return not streaming and not (len(parts) == 1 and hidden(name.name)) and held().path(name) is not None


def meaning_outside(spark: SparkSession, parts: Sequence[str], *, streaming: bool) -> Meaning:
    """Return what a name means to code outside of functions."""
    return meaning(parts, None, streaming=streaming, hidden=lambda name: is_view(spark, name))


def opened_outside(spark: SparkSession, meant: Meaning, *, streaming: bool, jreader: Any) -> DataFrame | None:
    """Return the rows of what a name means outside of functions, with the options of `jreader`; None for files and what Spark knows.

    Raises as `open_outside` and `information`.
    """
    if meant.name is None or meant.place is Place.SPARK:
        return None
    if meant.place is Place.OUTSIDE:
        return open_outside(spark, meant.name.key, streaming=streaming, jreader=jreader)
    if meant.place is Place.STORED:
        return held().opened(spark, meant.name, jreader)
    return information(spark, meant.name, streaming=streaming)


__all__ = ["Meaning", "Place", "meaning", "meaning_outside", "opened_outside"]
