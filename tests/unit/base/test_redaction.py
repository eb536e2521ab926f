"""Secrets in messages and events, and control characters of data on a terminal (docs/semantics/storage.md, ST-13, ST-14)."""

from __future__ import annotations

import json

import pytest

from lakelet.base import redaction
from lakelet.base.redaction import is_secret, remember_secrets, shown_options
from lakelet.base.text import printable
from lakelet.cli.lines import Line, write_lines
from lakelet.language.dbutils.parts import Secrets
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.writer import event_row


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    monkeypatch.setattr(redaction, "_values", set())


@pytest.mark.parametrize(
    "key",
    ["db_password", "spark.hadoop.fs.s3a.secret.key", "API_KEY", "sas.token", "storageConnectionString", "pwd", "kafka.sasl.jaas.config"],
)
def test_names_of_secrets(key):
    assert is_secret(key)
    assert shown_options({key: "x"}) == {key: "[REDACTED]"}


@pytest.mark.parametrize("key", ["secret_scope", "token_url", "password_column", "fs.s3a.credentials.provider", "landing", "keyword"])
def test_names_about_secrets(key):
    assert shown_options({key: "x"}) == {key: "x"}


def test_a_secret_is_in_no_part_of_an_event():
    remember_secrets({"db_password": 'p"w\\d-1', "secret_scope": "prod", "use_token": "true"})
    taken = Secrets(lambda notice: None, {"LAKELET_SECRET_KV_KEY": "s3cr3t-value"}).get("kv", "key")
    text = f'connect p"w\\d-1 {taken} prod true'
    error = ValueError(text)
    error.__cause__ = RuntimeError(text)
    event = Event("notice", text, Origin("p", "n", "u"), {"notice": {"texts": [text], "by": {"name": text}, "n": 1}}, error=error)
    for shown in (json.dumps(event.as_json()), json.dumps(event_row(event), default=str)):
        assert "w\\\\d-1" not in shown
        assert "s3cr3t" not in shown
        assert shown.count("connect [REDACTED] [REDACTED] prod true") == 5


def test_the_password_in_a_line_of_jaas_is_blotted_out_by_itself_too():
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="hunter-22";'
    remember_secrets({"kafka.sasl.jaas.config": line, "kafka.ssl.keystore.password": "store-33", "kafka.ssl.keystore.location": "/k.jks"})
    assert (
        redaction.redacted(f"{line} or hunter-22 or store-33 in /k.jks of ann") == "[REDACTED] or [REDACTED] or [REDACTED] in /k.jks of ann"
    )


def test_control_characters_are_shown_as_escapes_and_other_letters_as_they_are():
    assert printable("a\x1b[31mred\x07\x7f\x9b\r") == "a\\x1b[31mred\\x07\\x7f\\x9b\\x0d"
    assert printable("turn\u202eed\u2028") == "turn\\u202eed\\u2028"
    assert printable("zwei\nZeilen\tmit größe 😀 क्‍ष") == "zwei Zeilen mit größe 😀 क्‍ष"


def test_prose_cannot_steer_a_terminal(capsys):
    import sys

    write_lines([Line("[CODE] row has \x1b]0;owned\x07")], sys.stderr)
    assert capsys.readouterr().err == "[CODE] row has \\x1b]0;owned\\x07\n"
