"""Tokens of service principals by OAuth, as a workspace gives them (documentation page "Authorize service principal access with OAuth")."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import uuid
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from tests.workspace_double.wire import Answer, Call

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class OAuth:
    """Client ids and secrets. `issuers`: who issues identity tokens that may be exchanged for a client's token, by client id.

    Such a token is a JWT whose signature nobody checks here; its `iss` must be the client's issuer (page "Workload identity federation").
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.clients: dict[str, tuple[str, str]] = {}
        self.issuers: dict[str, str] = {}
        workspace.routes.add("GET", "/oidc/.well-known/oauth-authorization-server", self._endpoints, open=True)
        workspace.routes.add("POST", "/oidc/v1/token", self._token, reads=True, open=True)

    def add(self, name: str, *, admin: bool) -> tuple[str, str]:
        """The client id and the secret of a new service principal, whose user name is its client id."""
        client, secret = str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "dose" + secrets.token_hex(16)
        token = self._workspace.add_user(client, admin=admin, service_principal=True)
        self.clients[client] = (secret, token)
        return client, secret

    def _endpoints(self, call: Call) -> Answer:
        root = f"{self._workspace.url}/oidc"
        return Answer({"authorization_endpoint": f"{root}/v1/authorize", "token_endpoint": f"{root}/v1/token"})

    def _token(self, call: Call) -> Answer:
        form = {key: values[-1] for key, values in parse_qs(call.raw.decode()).items()}
        basic = call.headers.get("Authorization", "").partition("Basic ")[2]
        client, _, secret = _decoded(basic).partition(":") if basic else (form.get("client_id", ""), "", form.get("client_secret", ""))
        if client not in self.clients:
            return _refused("invalid_client", "Client authentication failed")
        expected, token = self.clients[client]
        if form.get("grant_type") == _EXCHANGE:
            if _issuer(form.get("subject_token", "")) != self.issuers.get(client, ""):
                return _refused("invalid_grant", "No federation policy matches the token")
        elif form.get("grant_type") != "client_credentials" or secret != expected:
            return _refused("invalid_client", "Client authentication failed")
        return Answer({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": "all-apis"})


def _refused(code: str, text: str) -> Answer:
    """Errors of OAuth have a form of their own (RFC 6749, 5.2)."""
    return Answer({"error": code, "error_description": text}, 401)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _issuer(token: str) -> str:
    """`iss` of a JWT; empty for what is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return ""
    return str(claims.get("iss", ""))
