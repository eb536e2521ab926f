"""Who may ask: tokens and users."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tests.workspace_double.wire import Answer, ApiError, Call, User

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

WORKSPACE_ID = "1234567890123456"


class Identity:
    """Tokens of users. `wrong_status`: what a token that nobody has is answered with.

    401 is what the SDK calls `Unauthenticated` (facts 1.4); older workspaces answered 403 with the number 403 as `error_code`
    ("Invalid access token.", public issue databricks-sdk-go #917; for one that expired, databricks-vscode #583): `wrong_status = 403`.
    The texts for 401 are not documented.
    """

    def __init__(self, workspace: Workspace, user_name: str) -> None:
        self._workspace = workspace
        self._tokens: dict[str, User] = {}
        self._expired: set[str] = set()
        self.wrong_status = 401
        self.main = self.add(user_name, admin=True)
        workspace.routes.add("GET", "/.well-known/databricks-config", self._config, open=True)
        workspace.routes.add("GET", "/api/2.0/preview/scim/v2/Me", self._me)

    def add(self, name: str, *, admin: bool, service_principal: bool = False) -> str:
        """A token of a user, who is made if there is none of that name."""
        token = "dapi" + secrets.token_hex(16)
        known = {user.name: user for user in self._tokens.values()}
        display = name.split("@")[0].replace(".", " ").title()
        self._tokens[token] = known.get(name) or User(name, str(4000 + len(known)), admin, display, service_principal)
        return token

    def expire(self, token: str) -> None:
        self._expired.add(token)

    def user(self, authorization: str | None) -> User:
        """Whose request it is (facts 1.6, 1: Bearer check on everything but `/.well-known/`). Raises ApiError."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme != "Bearer" or not token:
            raise ApiError(401, "UNAUTHENTICATED", "Credential was not sent or was of an unsupported type for this API.")
        if token in self._expired:
            if self.wrong_status == 403:
                raise ApiError(403, 403, "Token is expiring within 30 seconds. (token expired)")
            raise ApiError(401, "UNAUTHENTICATED", "Access token has expired.")
        if token not in self._tokens:
            raise ApiError(self.wrong_status, 403 if self.wrong_status == 403 else "UNAUTHENTICATED", "Invalid access token.")
        return self._tokens[token]

    def _config(self, call: Call) -> Answer:
        """facts 1.1: asked for without credentials when a client is made; the fields that the SDK uses."""
        return Answer({"workspace_id": WORKSPACE_ID, "cloud": "AWS", "oidc_endpoint": f"{self._workspace.url}/oidc"})

    def _me(self, call: Call) -> Answer:
        """facts 1.2, `current_user.me`."""
        groups = ["users", "admins"] if call.user.admin else ["users"]
        return Answer(
            {
                "id": call.user.id,
                "userName": call.user.name,
                "displayName": call.user.display_name,
                "active": True,
                "emails": [{"value": call.user.name, "type": "work", "primary": True}],
                "groups": [{"display": name, "value": str(7000 + number), "type": "direct"} for number, name in enumerate(groups)],
            }
        )
