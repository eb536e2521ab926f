"""Editor support for pipeline code: types of `dlt`, `pyspark.pipelines`, `spark`, `dbutils` and `display` in a project."""

from lakelet.project.editor.settings import stubs, write_settings

__all__ = ["stubs", "write_settings"]
