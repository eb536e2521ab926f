"""Commands of SQL by their words: which table one works on and where its name stands, what one lists. No Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakelet.language.sql_text.tokens import Token, begins_with, name_end, plain_tokens

# Of the words of a statement, each followed by one blank; strings and names in back quotes are the sign `?` there.
_COMMAND = re.compile(
    "(CREATE (OR REPLACE )?(EXTERNAL )?TABLE (IF NOT EXISTS )?|REPLACE TABLE "
    "|INSERT (INTO|OVERWRITE) (TABLE )?|MERGE (WITH SCHEMA EVOLUTION )?INTO |UPDATE |DELETE FROM "
    "|TRUNCATE TABLE |DROP TABLE (IF EXISTS )?|ALTER TABLE |COMMENT ON TABLE |OPTIMIZE |VACUUM "
    "|ANALYZE TABLE |REFRESH TABLE |SHOW (COLUMNS (IN|FROM)|CREATE TABLE|TBLPROPERTIES) "
    "|(DESC|DESCRIBE) (TABLE )?((EXTENDED|FORMATTED|DETAIL|HISTORY) )?)(?=.)"
)
_CONTAINER = re.compile("CREATE (CATALOG|SCHEMA|DATABASE|VOLUME) ")
_USE = re.compile("USE ((CATALOG|SCHEMA|DATABASE) )?(?=.)")
_SHOWN = re.compile("SHOW (TABLES|SCHEMAS|DATABASES|CATALOGS) ((FROM|IN) )?")
_VIEW = re.compile("CREATE ((OR|REPLACE|GLOBAL|TEMP|TEMPORARY|MATERIALIZED) )*VIEW ")
_FIRST = ("CREATE", "REPLACE", "INSERT", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "DROP", "ALTER", "COMMENT", "OPTIMIZE", "VACUUM",
          "ANALYZE", "REFRESH", "SHOW", "DESC", "DESCRIBE")  # fmt: skip


@dataclass(frozen=True)
class ListingStatement:
    """`SHOW TABLES IN scope LIKE 'pattern'`. `what`: TABLES, SCHEMAS or CATALOGS; the others are empty where they are not given."""

    what: str
    scope: str = ""
    pattern: str = ""


@dataclass(frozen=True)
class Command:
    """`verb`: the words before the name, with one blank between them; `name`: as it is written, `text[start:stop]`."""

    verb: str
    name: str
    start: int
    stop: int

    @property
    def creates(self) -> bool:
        return self.verb.startswith(("CREATE", "REPLACE"))


def command(text: str) -> Command | None:
    """The command that a text is; None for any other text."""
    if not begins_with(text, _FIRST):
        return None
    found = plain_tokens(text)
    match = _COMMAND.match(_first_words(found))
    return _command_with_name(text, found, match) if match is not None else None


def container(text: str) -> str | None:
    """What a text creates that holds tables or files: CATALOG, SCHEMA, DATABASE or VOLUME."""
    match = _CONTAINER.match(_first_words(plain_tokens(text))) if begins_with(text, ("CREATE",)) else None
    return match[1] if match is not None else None


def use(text: str) -> tuple[str, str] | None:
    """(CATALOG, SCHEMA, DATABASE or nothing, name) of a text that is USE and nothing else."""
    if not begins_with(text, ("USE",)):
        return None
    found = plain_tokens(text)
    found = found[:-1] if found[-1].upper == ";" else found
    match = _USE.match(_first_words(found))
    named = _command_with_name(text, found, match) if match is not None else None
    return (named.verb.removeprefix("USE").strip(), named.name) if named is not None and named.stop == found[-1].stop else None


def shown(text: str) -> ListingStatement | None:
    """What a text lists; None for any other text."""
    if not begins_with(text, ("SHOW",)):
        return None
    found = [token for token in plain_tokens(text) if token.upper != ";"]
    match = _SHOWN.match(_first_words(found))
    if match is None:
        return None
    start = match[0].count(" ")
    end = name_end(found, start) if match[2] else start
    scope = text[found[start].start : found[end - 1].stop] if end > start else ""
    rest = [token for token in found[end:] if token.upper != "LIKE"]
    if len(rest) > 1 or any(token.kind != "string" for token in rest) or (match[2] and not scope):
        return None
    return ListingStatement(match[1].replace("DATABASES", "SCHEMAS"), scope, rest[0].value if rest else "")


def makes_view(text: str) -> bool:
    """Whether a text creates a view."""
    return begins_with(text, ("CREATE",)) and _VIEW.match(_first_words(plain_tokens(text))) is not None


def _first_words(found: list[Token]) -> str:
    """The first words, each followed by a blank."""
    return "".join(f"{token.upper or '?'} " for token in found[:12])


def _command_with_name(text: str, found: list[Token], match: re.Match[str]) -> Command | None:
    """The command whose words before the name a match has; None where no name stands after them."""
    at = match[0].count(" ")
    end = name_end(found, at)
    if end == at:
        return None
    start, stop = found[at].start, found[end - 1].stop
    return Command(match[0].strip(), text[start:stop], start, stop)
