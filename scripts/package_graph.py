"""The packages of src/lakelet and their imports as a Mermaid chart: `python scripts/package_graph.py`.

An arrow goes from a package to one that it imports; arrows that follow from others (a → b → c makes a → c) are left out.
`docs/how-it-works.md` shows the chart; `tests/unit/house/test_package_graph.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import grimp

ROOT = "lakelet"


def package_imports() -> dict[str, frozenset[str]]:
    """Return what each package or module directly below `lakelet` imports of the others."""
    graph = grimp.build_graph(ROOT)
    children = sorted(graph.find_children(ROOT))
    return {
        importer.rpartition(".")[2]: frozenset(
            imported.rpartition(".")[2]
            for imported in children
            if imported != importer and graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
        )
        for importer in children
        if not importer.endswith("__main__")
    }


def reduced(imports: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the imports without those that a longer way implies. The graph has no circle."""
    below: dict[str, frozenset[str]] = {}

    def reach(name: str) -> frozenset[str]:
        if name not in below:
            below[name] = imports[name].union(*(reach(other) for other in imports[name]))
        return below[name]

    return {name: frozenset(o for o in found if not any(o in reach(p) for p in found if p != o)) for name, found in imports.items()}


def depth(imports: Mapping[str, frozenset[str]], name: str) -> int:
    """Return the length of the longest way down from a package."""
    return 1 + max((depth(imports, other) for other in imports[name]), default=-1)


def mermaid() -> str:
    """Return the chart's text."""
    imports = package_imports()
    ranked = sorted(imports, key=lambda name: (-depth(imports, name), name))
    lines = ["graph TD"]
    for _, names in groupby(ranked, key=lambda name: depth(imports, name)):
        lines += [f"    {name}[{name}]" for name in names]
    shown = reduced(imports)
    lines += [f"    {name} --> {other}" for name in ranked for other in sorted(shown[name])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(mermaid(), end="")
