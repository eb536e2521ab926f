"""A workspace on loopback in a process of its own, to try commands by hand: `python -m tests.workspace_double`, and another terminal.

Prints what a shell must export to find it, then waits until it is interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import threading

from tests.workspace_double.workspace import Workspace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", default="dev.user@example.com", help="name of its first user")
    parser.add_argument("--catalog", action="append", default=[], help="a catalog that is there besides main; may be repeated")
    parser.add_argument("--warehouse", action="append", default=[], help="a SQL warehouse besides `Shared warehouse`; may be repeated")
    parser.add_argument("--stages-per-poll", type=int, default=1, help="how far an update goes on whenever somebody looks at it")
    arguments = parser.parse_args()
    with Workspace(arguments.user) as workspace:
        workspace.catalogs.update(arguments.catalog)
        for name in arguments.warehouse:
            workspace.add_warehouse(name)
        workspace.stages_per_poll = arguments.stages_per_poll
        for name, value in workspace.environment.items():
            print(f"export {name}={value}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
