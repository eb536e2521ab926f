"""Files of new projects and new tables: values in, files out. No Spark.

The templates of projects are projects of this repository, which its tests run; there is no second copy of them.
"""

from lakelet.scaffold.data_files import DataSet, data_sets, pipeline_of
from lakelet.scaffold.files import LIBRARY, NewFile, outdated, write_library, write_new
from lakelet.scaffold.projects import DEFAULT, NewProject, StartingPoint, new_project, project_name, starting_points
from lakelet.scaffold.tables import NewName, NewTable, SourceTable, SuggestedRule, named_source, table_files, table_name

__all__ = [
    "DEFAULT",
    "LIBRARY",
    "DataSet",
    "NewFile",
    "NewName",
    "NewProject",
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
