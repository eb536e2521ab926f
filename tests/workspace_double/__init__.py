"""A Databricks workspace on loopback: the test double for the service behind `databricks-sdk`.

Built by somebody who had not seen the code that it tests. Docstrings say where a behaviour comes from: `facts 1.2` is a section of FACTS.md
beside this file, other titles are pages of the public documentation or public issues. Where they leave something open, the docstring says
so. Whatever it does not know is answered with 501, never with a pretended success, and a handler that crashes fails the test.

    from tests.workspace_double import Workspace, flow

    with Workspace() as w:
        w.script("*", [flow("main.sales.orders", rows=10, expectations={"valid_id": (9, 1)})])
        w.fail("POST", "/api/2.0/pipelines", drop="after")       # or w.chaos(seed), or w.when(..., action)
        client = WorkspaceClient(host=w.url, token=w.token)
        ...
        assert [str(request) for request in w.writes] == [...]   # w.requests: all of them; w.state(): everything to compare

`python -m tests.workspace_double` runs one to try commands by hand.
"""

from tests.workspace_double.scripts import dataset, event, failing_flow, flow
from tests.workspace_double.wire import ApiError, Request
from tests.workspace_double.workspace import Workspace

__all__ = ["ApiError", "Request", "Workspace", "dataset", "event", "failing_flow", "flow"]
