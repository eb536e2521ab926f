"""What deployed code imports of Lakelet. Databricks has none of it but a copy of the transformation library in the project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError, Location
from lakelet.deploy.bundle.imports import ModuleImport
from lakelet.scaffold import LIBRARY, outdated

PACKAGE = "lakelet"
_TRANSFORMS = f"{PACKAGE}.{LIBRARY.name}"
_WHY = "Databricks has no Lakelet, and installing it there would replace Databricks' own Spark"


def is_of_lakelet(one: ModuleImport) -> bool:
    """Whether a file that has no Lakelet fails at this import."""
    return one.top == PACKAGE and not one.level and not one.optional


def beyond_library(one: ModuleImport) -> Iterator[str]:
    """Names of modules and objects of Lakelet that the import needs and that are not of the library."""
    if one.module == PACKAGE and one.names:
        yield from (f"{PACKAGE}.{name}" for name in one.names if name != LIBRARY.name)
    elif one.module != _TRANSFORMS and not one.module.startswith(f"{_TRANSFORMS}."):
        yield one.module


def needs_runtime(file: str, name: str, where: Location) -> LakeletError:
    """The error for an import of Lakelet itself."""
    what = f"{file} imports {name}, which Databricks does not have"
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        what,
        where=where,
        why=_WHY,
        todo="Take the import out of what is deployed, or let the code go on without it: try: … except ImportError: …",
    )


def needs_copy(file: str, folder: str, sync: str, where: Location) -> LakeletError:
    """The error for an import of the library where no copy is deployed.

    Args:
        folder: argument of the command that writes the copy; "" for the project's folder.
        sync: what has to be in `sync.paths` besides; "" for nothing.
    """
    what = f"{file} imports {_TRANSFORMS}, and the files of the deployment have no copy of it"
    besides = f", and add its folder to sync.paths (- {sync})" if sync else ""
    argument = f" {folder}" if folder else ""
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        what,
        where=where,
        why=_WHY,
        todo=f"Write a copy into the project{besides}: lakelet new transforms{argument}",
    )


def installs_lakelet(requirement: str, where: Location) -> LakeletError:
    """The error for a line of an environment that installs Lakelet."""
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        f"environment.dependencies: {requirement} installs Lakelet on Databricks",
        where=where,
        why="pip would replace Databricks' own Spark with the pyspark that Lakelet needs",
        todo="Take it out. For lakelet.transforms deploy a copy: lakelet new transforms",
    )


def age_of_copy(root: Path, shown: str, folder: str) -> str:
    """A sentence about a copy below `root` that is not the installed library; "" where it is.

    Args:
        shown: the copy's folder in messages.
        folder: as in `needs_copy`.
    """
    found = outdated(root)
    if not found:
        return ""
    names = ", ".join(file.path.name for file in found[:3]) + (" …" if len(found) > 3 else "")
    renew = f"lakelet new transforms {folder}".rstrip()
    return (
        f"{shown} is not the library of the installed Lakelet {VERSION} ({names}): local runs use the installed one, Databricks the copy;"
        f" to renew the copy: {renew} --overwrite"
    )
