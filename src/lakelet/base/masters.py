"""What the URL of a Spark master says."""

from __future__ import annotations

_LOCAL_CLUSTER = "local-cluster"


def is_local(master: str | None) -> bool:
    """Return whether tasks run in the driver's own process: `local`, `local[2]`, or no master; not `local-cluster[2,1,1024]`."""
    return master is None or (master.startswith("local") and not master.startswith(_LOCAL_CLUSTER))


def is_on_this_machine(master: str | None) -> bool:
    """Return whether no other machine takes part: `is_local`, or a cluster of processes that the driver starts beside itself."""
    return is_local(master) or str(master).startswith(_LOCAL_CLUSTER)


__all__ = ["is_local", "is_on_this_machine"]
