"""A Databricks workspace on loopback: the test double for the service behind `databricks-sdk`.

Built from public documentation and `ecosystem.md` (sections 1.1 to 1.6 and 4), which docstrings name as `ecosystem 1.2`, by somebody who
had not seen the code that it tests. It answers 501 for every route and every value that it does not know. What the documentation leaves
open is said at the place where it is chosen.

    from tests.workspace_double import Workspace, flow

    with Workspace() as w:
        w.script("*", [flow("main.sales.orders", rows=10, expectations={"valid_id": (9, 1)})])
        w.fail("POST", "/api/2.0/pipelines", drop="after")
        client = WorkspaceClient(host=w.url, token=w.token)
"""

from tests.workspace_double.scripts import dataset, event, failing_flow, flow
from tests.workspace_double.wire import ApiError, Request
from tests.workspace_double.workspace import Workspace

__all__ = ["ApiError", "Request", "Workspace", "dataset", "event", "failing_flow", "flow"]
