"""A connection to a workspace: credentials by the SDK's own chain and in no text, coded errors, requests without a double effect."""

from __future__ import annotations

from lakelet.deploy.client.connection import Client, Patience, connect
from lakelet.deploy.client.refusals import Unanswered

__all__ = ["Client", "Patience", "Unanswered", "connect"]
