"""Files of source code as Databricks takes them: plain Python and SQL, Databricks notebooks in both, Jupyter notebooks. No Spark.

`read_source` cuts a file into cells, `SourceRunner` runs them, each file once and with the notebooks it names by `%run`.
"""

from lakelet.language.notebook.cells import PYTHON, SQL, NotebookCell, SourceCells, read_source
from lakelet.language.notebook.running import LeftOut, NotebookExit, SourceRunner

__all__ = ["PYTHON", "SQL", "LeftOut", "NotebookCell", "NotebookExit", "SourceCells", "SourceRunner", "read_source"]
