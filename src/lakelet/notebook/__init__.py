"""Source files as the service takes them: plain Python and SQL, Databricks notebooks in both, Jupyter notebooks. Layer 1: no Spark.

`read_source` cuts a file into cells, `Sources` runs them, each file once and with the notebooks it names by `%run`.
"""

from lakelet.notebook.cells import Cell, Source, read_source
from lakelet.notebook.running import NotebookExit, Sources

__all__ = ["Cell", "NotebookExit", "Source", "Sources", "read_source"]
