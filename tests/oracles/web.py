"""The tables of the web events example, computed from its CSV files by the standard library alone, and how found tables differ from that.

Written from docs/web.md and the generator's files before looking at the pipeline; forms of masks and tokens are those of the docstrings in
`lakelet.transforms`. Neither tokens nor keys of nested tables are computed: `differences` learns which value a token stands for from events
that are alike in all else, and follows `_key`, `_parent_key` and `_position` back to one document per purchase. Should lines of one event
differ, the first in order of files counts.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Tables = Mapping[str, Iterable[Row]]

TABLES = ("web_events", "pages_daily", "purchases", "purchases_items", "purchases_items_tags")
TOKENS = {"user": re.compile(r"tok_[0-9A-Za-z_-]{22}"), "ip": re.compile(r"ip_[0-9A-Za-z_-]{12}")}
_NAMES = {"Event Time": "event_time", "Page URL": "page"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_AMOUNT = re.compile(r"-?\d{1,8}(\.\d{1,2})?")
_INTEGER, _INTEGERS = re.compile(r"-?\d{1,18}"), range(-(2**31), 2**31)
_PHONE, _CARD = re.compile(r"\+?[\d\s().\-/]+"), re.compile(r"\d+([ -]\d+)*")


def differences(tables: Tables, landing: Path, key: str) -> list[str]:
    """Return how the tables, rows by name, differ from what the files say, a line each; none where they are right.

    `key` is that of the hash.
    """
    found = {name: list(tables[name]) for name in TABLES}
    wanted = expected(landing, key)
    purchases, errors = documents(found)
    values, told = values_of_tokens(found["web_events"], wanted["web_events"])
    files = {identity(row): row["_file_name"] for row in wanted["web_events"]}
    events = [with_files(in_clear(row, values), files) for row in found["web_events"]]
    comparable = {"web_events": events, "pages_daily": found["pages_daily"], "purchases": [in_clear(row, values) for row in purchases]}
    for name, rows in comparable.items():
        ours, theirs = (Counter(repr(plain(row)) for row in given) for given in (rows, wanted[name]))
        if ours != theirs:
            told.append(f"{name} has {some(ours - theirs)} and lacks {some(theirs - ours)}")
    return errors + told


def some(rows: Counter[str]) -> str:
    return ", ".join(islice(rows.elements(), 3)) or "nothing more"


def expected(landing: Path, key: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the files say: `web_events` with `user` and `ip` as they came and `_file_name` as the set of an event's files,
    `pages_daily`, and `purchases`, each with its `items` and these with their `tags`.
    """
    rows = [event_of(line, files, key) for line, files in events_of(landing)]
    return {"web_events": rows, "pages_daily": pages_daily(rows), "purchases": [purchase(row) for row in rows if row["type"] == "purchase"]}


# ---------------------------------------------------------------------------------------------------------------- events


def events_of(landing: Path) -> list[tuple[Mapping[str, str | None], set[str]]]:
    """Return each event once as its first line says it, what is empty as None, with the names of all files in which it came."""
    once: dict[tuple[str | None, ...], tuple[Mapping[str, str | None], set[str]]] = {}
    for path in sorted(landing.rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                texts = {_NAMES.get(name, name): text or None for name, text in line.items()}
                _, files = once.setdefault((texts["event_id"], texts["event_time"], texts["user"]), (texts, set()))
                files.add(path.name)
    return list(once.values())


def event_of(line: Mapping[str, str | None], files: Iterable[str], key: str) -> dict[str, Any]:
    """Return the row of a line."""
    misfits: dict[str, str] = {}

    def typed(column: str, fits: Callable[[str], Any], read: Callable[[str], Any]) -> Any:
        text = line[column]
        if text is not None and not fits(text):
            misfits[column] = text
        return read(text) if text is not None and column not in misfits else None

    at = typed("event_time", _TIME.fullmatch, lambda text: datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc))
    duration = typed("duration_ms", lambda text: _INTEGER.fullmatch(text) and int(text) in _INTEGERS, int)
    amount = typed("amount", _AMOUNT.fullmatch, Decimal)
    email = line["email"]
    details, corrupt = details_of(line["properties"])
    return {
        **{name: line[name] for name in ("event_id", "type", "properties", "page", "user", "ip")},
        "event_time": at,
        "event_date": at and at.date(),
        "duration_ms": duration,
        "amount": amount,
        "person": email and hmac.new(key.encode(), email.encode(), hashlib.sha256).hexdigest(),
        "email": masked_email(email),
        "phone": masked_digits(line["phone"], _PHONE, range(7, 16), shown=2),
        "card": masked_digits(line["card"], _CARD, range(12, 20), shown=4),
        "details": details,
        "_misfits": misfits or None,
        "_corrupt": corrupt,
        "_file_name": frozenset(files),
        "_rescued_data": None,
    }


def masked_email(text: str | None) -> str | None:
    """Return the first letter, if it is not the only one, and the domain of an address; stars for what is none."""
    form = re.fullmatch(r"([^@\s\"']+)@([^@\s\"']+)", text or "")
    return f"{form[1][0] if form[1][1:] else ''}***@{form[2]}" if form else text and "*" * len(text)


def masked_digits(text: str | None, form: re.Pattern[str], lengths: range, *, shown: int) -> str | None:
    """Return the text with a star for each digit but the last `shown`; stars alone where it has another form or number of digits."""
    if text is None:
        return None
    digits = [place for place, letter in enumerate(text) if letter.isdigit()]
    if not form.fullmatch(text) or len(digits) not in lengths:
        return "*" * len(text)
    hidden = set(digits[:-shown])
    return "".join("*" if place in hidden else letter for place, letter in enumerate(text))


def details_of(text: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """Return the struct of a JSON text, and the text where it is broken."""
    if text is None:
        return None, None
    try:
        said = json.loads(text)
    except ValueError:
        return None, text
    items = said.get("items")
    read = None if items is None else [{name: item.get(name) for name in ("sku", "count", "tags")} for item in items]
    return {"query": said.get("query"), "items": read}, None


# ------------------------------------------------------------------------------------------------------ tables of events


def pages_daily(events: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the views, people and time of each page and day."""
    groups: dict[tuple[date | None, str], list[Row]] = defaultdict(list)
    for event in events:
        if event["type"] == "page_view":
            groups[event["event_date"], event["page"]].append(event)
    rows = []
    for (day, page), group in groups.items():
        known = [event["duration_ms"] for event in group if event["duration_ms"] is not None]
        people = len({event["person"] for event in group} - {None})
        rows.append({"event_date": day, "page": page, "views": len(group), "people": people, "duration_ms": sum(known) if known else None})
    return rows


def purchase(event: Row) -> dict[str, Any]:
    """Return a purchase with its items, and these with their tags."""
    items = (event["details"] or {}).get("items")
    return {
        **{name: event[name] for name in ("event_id", "event_time", "user", "amount")},
        "items_size": size(items),
        "items": [
            {
                "sku": item["sku"],
                "count": item["count"],
                "tags_size": size(item["tags"]),
                "tags": [{"value": tag} for tag in item["tags"] or []],
            }
            for item in items or []
        ],
    }


def size(values: list[Any] | None) -> int | None:
    return None if values is None else len(values)


# ---------------------------------------------------------------------------------------------------------- found tables


def documents(found: Mapping[str, list[Row]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the purchases as documents in the form of `purchase`, and what is wrong with keys and positions."""
    errors: list[str] = []
    children: dict[str, dict[Any, list[Row]]] = {}
    for parent, name in (("purchases", "purchases_items"), ("purchases_items", "purchases_items_tags")):
        keys, below = [row["_key"] for row in found[parent]], defaultdict(list)
        for row in sorted(found[name], key=lambda row: row["_position"]):
            below[row["_parent_key"]].append(row)
        if len({*keys, None}) != len(keys) + 1:
            errors.append(f"{parent}: a row without a key, or two with one")
        if set(below) - set(keys):
            errors.append(f"{name}: rows without a parent")
        if any([row["_position"] for row in rows] != list(range(len(rows))) for rows in below.values()):
            errors.append(f"{name}: positions of one parent do not count from 0")
        children[name] = below
    if len({row["_key"] for row in found["purchases_items_tags"]}) != len(found["purchases_items_tags"]):
        errors.append("purchases_items_tags: two rows with one key")

    def alone(row: Row) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in ("_key", "_parent_key", "_position")}

    def with_tags(item: Row) -> dict[str, Any]:
        return {**alone(item), "tags": [alone(tag) for tag in children["purchases_items_tags"].get(item["_key"], [])]}

    def with_items(row: Row) -> dict[str, Any]:
        return {**alone(row), "items": [with_tags(item) for item in children["purchases_items"].get(row["_key"], [])]}

    return [with_items(row) for row in found["purchases"]], errors


def values_of_tokens(found: Iterable[Row], wanted: Iterable[Row]) -> tuple[dict[str, dict[Any, Any]], list[str]]:
    """Return which value each token stands for, by column, and what is wrong: tokens and values are not one to one, a token's form."""
    events: dict[str, list[Row]] = defaultdict(list)
    for row in wanted:
        events[identity(row)].append(row)
    values, errors = {}, []
    for column, form in TOKENS.items():
        pairs = {(row[column], events[identity(row)][0][column]) for row in found if len(events[identity(row)]) == 1}
        if not len({token for token, _ in pairs}) == len({value for _, value in pairs}) == len(pairs):
            errors.append(f"{column}: tokens and values are not one to one")
        if not all(form.fullmatch(token or "") if value else token is None for token, value in pairs):
            errors.append(f"{column}: a token of another form")
        values[column] = dict(pairs)
    return values, errors


def identity(row: Row) -> str:
    """Return what tells an event from others but for the columns of tokens."""
    columns = ("event_id", "event_time", "type", "page", "duration_ms", "amount", "person", "properties")
    return repr(plain([row[name] for name in columns]))


def in_clear(row: Row, values: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    """Return the row with values in place of their tokens; a token that no event explains stays."""
    return {name: values[name].get(value, value) if name in values else value for name, value in row.items()}


def with_files(row: Row, files: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """Return the row with all files of the event, if its file is one of them."""
    known = files.get(identity(row), frozenset())
    return {**row, "_file_name": known} if row["_file_name"] in known else dict(row)


def plain(value: Any) -> Any:
    """Return a value whose `repr` is that of all equal ones."""
    if isinstance(value, Mapping):
        return sorted((name, plain(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple | frozenset):
        return [plain(inner) for inner in (sorted(value) if isinstance(value, frozenset) else value)]
    if isinstance(value, Decimal):
        return value.quantize(Decimal("0.01"))
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
