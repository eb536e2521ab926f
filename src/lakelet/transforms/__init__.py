"""Functions for `DataFrame.transform`: what most pipelines do to rows and columns, done once, with nothing lost without a word.

Each function takes its settings and returns a `Transform`: a callable from a frame to a frame, or (`relationalize`) to a dict of frames
by name. Spark's own functions do the work. The package needs pyspark and nothing else of Lakelet: it can be installed or copied as a
folder on any cluster, Databricks included. Column names are found as Spark finds them, without regard to case; a dot or backtick in a
name is part of the name. What cannot be done raises `TransformError` with a code.
"""

from __future__ import annotations

from .applied import AppliedTransform, Transform, recording
from .casting import alter_types
from .combining import join, union
from .duplicates import add_watermark, deduplicate, deduplicate_micro_batch, drop_duplicates
from .errors import TransformError
from .flattening import explode, flatten, relationalize
from .parsing import parse_json
from .pii import keyed_hash, mask, mask_card, mask_email, mask_iban, mask_phone, null_out, tokenize
from .selecting import (
    add_current_timestamp,
    add_partition_columns,
    add_source_file,
    drop,
    drop_partition_columns,
    filter_rows,
    rename,
    replace_in_names,
    replace_in_values,
    select,
    with_columns,
)

__all__ = [
    "AppliedTransform",
    "Transform",
    "TransformError",
    "add_current_timestamp",
    "add_partition_columns",
    "add_source_file",
    "add_watermark",
    "alter_types",
    "deduplicate",
    "deduplicate_micro_batch",
    "drop",
    "drop_duplicates",
    "drop_partition_columns",
    "explode",
    "filter_rows",
    "flatten",
    "join",
    "keyed_hash",
    "mask",
    "mask_card",
    "mask_email",
    "mask_iban",
    "mask_phone",
    "null_out",
    "parse_json",
    "recording",
    "relationalize",
    "rename",
    "replace_in_names",
    "replace_in_values",
    "select",
    "tokenize",
    "union",
    "with_columns",
]
