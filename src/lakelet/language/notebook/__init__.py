"""Files of source code as Databricks takes them: plain Python and SQL, Databricks notebooks in both, Jupyter notebooks. No Spark.

`read_source` cuts a file into cells, `Sources` runs them, each file once and with the notebooks it names by `%run`.
"""

from lakelet.language.notebook.cells import PYTHON, SQL, NotebookCell, Source, read_source
from lakelet.language.notebook.running import LeftOut, NotebookExit, Sources

__all__ = ["PYTHON", "SQL", "LeftOut", "NotebookCell", "NotebookExit", "Source", "Sources", "read_source"]
