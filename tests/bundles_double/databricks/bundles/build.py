"""The program of the protocol: `--phase`, `--input`, `--output`, `--diagnostics`, `--locations`."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from databricks.bundles.core import Bundle, Resources
from databricks.bundles.pipelines import Pipeline


def called(function: Any, bundle: Bundle, *given: Any) -> Any:
    return function(*given) if len(inspect.signature(function).parameters) == len(given) else function(bundle, *given)


def named(text: str) -> Any:
    module, name = text.split(":")
    return getattr(importlib.import_module(module), name)


def main() -> int:
    parser = argparse.ArgumentParser()
    for key in ("phase", "input", "output", "diagnostics", "locations"):
        parser.add_argument(f"--{key}", required=True)
    asked = parser.parse_args()
    document = json.loads(Path(asked.input).read_text())
    bundle = Bundle(document["bundle"]["target"], {name: one["value"] for name, one in document["variables"].items()})
    places: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    resources = document.setdefault("resources", {})
    try:
        if asked.phase == "load_resources":
            for text in document["python"]["resources"]:
                made: Resources = called(named(text), bundle)
                said += [{"severity": "warning", "summary": one} for one in made.warnings]
                for (kind, name), body in made.made.items():
                    resources.setdefault(kind, {})[name] = body
                    file, line = made.places[kind, name]
                    places.append({"path": f"resources.{kind}.{name}", "file": file, "line": line, "column": 1})
        for text in document["python"]["mutators"] if asked.phase == "apply_mutators" else ():
            mutator = named(text)
            for name, body in resources.get(mutator.kind, {}).items():
                resources[mutator.kind][name] = called(mutator.change, bundle, Pipeline.from_dict(body)).as_dict()
                file, line = inspect.getsourcefile(mutator.change), mutator.change.__code__.co_firstlineno
                places.append({"path": f"resources.{mutator.kind}.{name}", "file": file, "line": line, "column": 1})
    except Exception as error:
        said.append({"severity": "error", "summary": f"Failed: {error}", "detail": traceback.format_exc()})
    Path(asked.diagnostics).write_text("".join(json.dumps(one) + "\n" for one in said))
    Path(asked.locations).write_text("".join(json.dumps(one) + "\n" for one in places))
    Path(asked.output).write_text(json.dumps(document))
    return 1 if any(one["severity"] == "error" for one in said) else 0


if __name__ == "__main__":
    sys.exit(main())
