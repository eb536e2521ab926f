"""The names that a pipeline of a bundle declares: where its tables live, and what its event log is called."""

from __future__ import annotations

from lakelet.base.names import Namespace, TableName
from lakelet.config.bundle import Bundle
from lakelet.config.yaml_tree import Node

_EVENT_LOG_KEYS = frozenset({"catalog", "schema", "name"})


def declared_namespace(bundle: Bundle, pipeline: Node) -> Namespace:
    """The catalog and schema of the pipeline's tables; the defaults where it declares none."""
    default = Namespace()
    catalog = pipeline.get("catalog")
    schema = pipeline.get("schema") or pipeline.get("target")
    return Namespace(bundle.text(catalog) if catalog else default.catalog, bundle.text(schema) if schema else default.schema)


def event_log_name(bundle: Bundle, pipeline: Node, namespace: Namespace) -> TableName | None:
    """The name under which the event log is published (`event_log: {catalog, schema, name}`), None where it is not.

    Without a catalog or schema it lives in `namespace`. Raises CONFIG_INVALID without a name, and for other keys.
    """
    node = pipeline.get("event_log")
    if node is None:
        return None
    node.refuse_unknown(_EVENT_LOG_KEYS, "event_log")
    name, catalog, schema = (node.get(key) for key in ("name", "catalog", "schema"))
    if name is None:
        raise node.bad("event_log has no name", todo="For example: event_log: {name: pipeline_events}")
    return TableName(
        bundle.text(catalog) if catalog else namespace.catalog,
        bundle.text(schema) if schema else namespace.schema,
        bundle.text(name),
    )
