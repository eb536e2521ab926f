"""Auto Loader: the `cloudFiles` streaming source as a Spark Python data source (docs/semantics/auto-loader.md).

Importing this package imports neither Spark nor pyarrow's readers; both come with the first call.
"""

from __future__ import annotations

from lakelet.autoloader.driver import AutoLoaderSource
from lakelet.autoloader.registration import register
from lakelet.autoloader.spec import Pending, SchemaChange, SourceSpec

__all__ = ["AutoLoaderSource", "Pending", "SchemaChange", "SourceSpec", "register"]
