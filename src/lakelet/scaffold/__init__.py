"""Files of new projects and new tables: values in, files out. No Spark.

The templates of projects are projects of this repository, which its tests run; there is no second copy of them.
"""

from lakelet.scaffold.data_files import DataSet, data_sets, pipeline_of
from lakelet.scaffold.library import LIBRARY, outdated, write_library
from lakelet.scaffold.names import NewName, project_name, table_name
from lakelet.scaffold.projects import Created, new_project
from lakelet.scaffold.starting_points import DEFAULT, StartingPoint, starting_points
from lakelet.scaffold.tables import NewTable, SourceTable, SuggestedRule, named_source, table_files
from lakelet.scaffold.writing import NewFile, write_new

__all__ = [
    "DEFAULT",
    "LIBRARY",
    "Created",
    "DataSet",
    "NewFile",
    "NewName",
    "NewTable",
    "SourceTable",
    "StartingPoint",
    "SuggestedRule",
    "data_sets",
    "named_source",
    "new_project",
    "outdated",
    "pipeline_of",
    "project_name",
    "starting_points",
    "table_files",
    "table_name",
    "write_library",
    "write_new",
]
