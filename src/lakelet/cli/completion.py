"""Shell completion of arguments: names of the stored datasets of the current folder."""

from __future__ import annotations


def stored_datasets(incomplete: str) -> list[str]:
    """Return the completions of a partly typed list of names with directions: `a,+te` → `a,+team_daily`."""
    before, comma, last = incomplete.rpartition(",")
    plus = "+" if last.startswith("+") else ""
    typed = last.removeprefix("+").lower()
    return [f"{before}{comma}{plus}{name}" for name in _names() if name.lower().startswith(typed)]


def _names() -> list[str]:
    from lakelet.base.errors import LakeletError
    from lakelet.config.update_config import find_storage
    from lakelet.storage.root import Storage

    try:
        registry = Storage(find_storage(None)).registry()
    except (LakeletError, OSError):  # an invalid project file, which a shell cannot report
        return []
    prefix = f"{registry.namespace.catalog}.{registry.namespace.schema}."
    return sorted(stored.name.removeprefix(prefix) for stored in registry.datasets.values() if stored.active)


__all__ = ["stored_datasets"]
