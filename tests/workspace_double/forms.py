"""Bodies of requests: JSON and multipart forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from tests.workspace_double.wire import invalid


def parsed(raw: bytes, content_type: str) -> tuple[dict[str, Any], bool]:
    """The fields of a body and whether it was a form (facts 1.6, 3: both kinds on `workspace/import`). Raises ApiError."""
    if content_type.startswith("multipart/form-data"):
        return _form(raw, content_type), True
    if not raw or not content_type.startswith("application/json"):
        return {}, False
    try:
        value = json.loads(raw)
    except ValueError:
        raise invalid("Could not parse request object: it is not JSON") from None
    if not isinstance(value, dict):
        raise invalid("Could not parse request object: expected an object")
    return value, False


def _form(raw: bytes, content_type: str) -> dict[str, Any]:
    """The fields of a form; a part with a file name stays bytes. (facts 1.6, 6: not by `cgi`, which Python 3.13 lacks.)"""
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + raw)
    if not message.is_multipart():
        raise invalid("Could not parse request object: not a form")
    fields: dict[str, Any] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if not isinstance(name, str):
            raise invalid("Could not parse request object: a part of the form has no name")
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        fields[name] = content if part.get_filename() is not None or name == "content" else content.decode()
    return fields


def shown(raw: bytes, fields: Mapping[str, Any]) -> Any:
    """A body as `Workspace.requests` keeps it."""
    return dict(fields) if fields else (raw or None)
