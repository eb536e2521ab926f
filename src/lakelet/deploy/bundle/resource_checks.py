"""Checks across the keys of a resource: tasks that exist, libraries that can be combined, limits of Databricks."""

from __future__ import annotations

from collections.abc import Iterator

from lakelet.base.errors import nearest_names
from lakelet.config.nodes import children, elements, found
from lakelet.config.yaml_tree import Node
from lakelet.deploy.bundle.problems import Problems
from lakelet.deploy.desired import ResourceKey, ResourceKind

_MOST_TAGS = 25
_MANAGED = ("ingestion_definition", "gateway_definition")
"""Pipelines with one of these have no source files."""


def check_resource(key: ResourceKey, node: Node, problems: Problems) -> None:
    """Note what does not go together in one resource, references filled in."""
    if len(children(node.get("tags"))) > _MOST_TAGS:
        problems.bad(node.value["tags"], f"{key} has {len(children(node.get('tags')))} tags, and Databricks takes {_MOST_TAGS}")
    if key.kind is ResourceKind.PIPELINE:
        _check_pipeline(key, node, problems)
    elif key.kind is ResourceKind.JOB:
        _check_job(key, node, problems)


def _check_pipeline(key: ResourceKey, node: Node, problems: Problems) -> None:
    libraries = elements(node.get("libraries"))
    if not libraries and not any(node.get(name) for name in _MANAGED):
        todo = "For example: libraries: [{glob: {include: ../pipelines/**}}]"
        problems.bad(node.get("libraries") or node, f"{key} has no libraries: nothing says which files it runs", todo=todo)
    globs = [library for library in libraries if library.get("glob")]
    others = [library for library in libraries if library.get("file") or library.get("notebook")]
    if globs and others:
        problems.bad(others[0], f"{key} has a glob beside a file or notebook, which Databricks refuses", todo="Write all of them as globs.")
    serverless, clusters = node.get("serverless"), node.get("clusters")
    if serverless is not None and serverless.value is True and clusters is not None and elements(clusters):
        problems.bad(clusters, f"{key} is serverless and has clusters", todo="Take one of them out.")
    target = node.get("target")
    if target is not None and "." in target.text and "${" not in target.text:
        problems.bad(
            target, f"target of {key} is {target.text!r}: a schema without its catalog is expected", todo="Use catalog and schema."
        )


def _check_job(key: ResourceKey, node: Node, problems: Problems) -> None:
    tasks = elements(node.get("tasks"))
    named = {one.text for one in found(node, ("tasks", "*", "task_key"))}
    for wanted in found(node, ("tasks", "*", "depends_on", "*", "task_key")):
        if wanted.text not in named:
            problems.bad(wanted, f"{key} has no task {wanted.text!r} to depend on", nearest=nearest_names(wanted.text, named))
    for field, declared in (("environment_key", "environments"), ("job_cluster_key", "job_clusters")):
        known = {one.text for one in found(node, (declared, "*", field))}
        for task in tasks:
            given = task.get(field)
            if given is not None and given.text not in known:
                problems.bad(given, f"{key} has no {given.text!r} among its {declared}", nearest=nearest_names(given.text, known))
    circle = _circle(tasks)
    if circle:
        problems.bad(node.value["tasks"], f"tasks of {key} depend on one another", why=" → ".join(circle))


def _circle(tasks: list[Node]) -> list[str]:
    """Tasks that wait for one another, the first one again at the end; empty where there are none."""
    from graphlib import CycleError, TopologicalSorter

    graph = {task.value["task_key"].text: list(_dependencies(task)) for task in tasks if task.get("task_key")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(one) for one in reversed(error.args[1])]
    return []


def _dependencies(task: Node) -> Iterator[str]:
    yield from (one.text for one in found(task, ("depends_on", "*", "task_key")))
