"""Masks that keep the form of a value: e-mail address, phone number, card number, IBAN.

What does not have the form is masked as a whole, each character by `*`, so that nothing passes because it is malformed; so is a number
with no more digits than `keep_last`, of which nothing would be hidden.
NULL stays NULL, the empty text empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from .applied import transform
from .columns import change_columns, listed
from .errors import argument_error
from .pii import EACH
from .schemas import require_string

OneToOne = Callable[[DataFrame], DataFrame]

_EMAIL = r"^[^@\s\"]+@[^@\s\"]+\z"
_PHONE = r"^\+?[ ().\-/]*(?:\p{Nd}[ ().\-/]*){7,15}\z"
_CARD = r"^(?:\p{Nd}[ \-]?){11,18}\p{Nd}\z"
_IBAN = r"^[A-Za-z]{2} ?[0-9]{2}(?: ?[A-Za-z0-9]){11,30}\z"


@transform
def mask_email(columns: str | Sequence[str], *, keep_first: int = 1, keep_domain: bool = True) -> OneToOne:
    """`ann.lee@example.com` becomes `a***@example.com`: three stars whatever the length; without `keep_domain` `a***@***`.

    A name that is not longer than `keep_first` is `***`. A value without exactly one `@` between two parts, or with spaces or quotes, is
    no address.

    >>> from lakelet.transforms import mask_email
    >>> mails = spark.createDataFrame([("ann.lee@example.com",), ("ü@exämple.de",), ("no address",), (None,)], "m STRING")
    >>> [row.m for row in mails.transform(mask_email("m")).collect()]
    ['a***@example.com', '***@exämple.de', '**********', None]
    """
    names = _checked("mask_email", columns, keep_first)

    def hidden(value: Column) -> Column:
        name = F.substring_index(value, "@", 1)
        start = F.when(F.length(name) > keep_first, F.substring(name, 1, keep_first)).otherwise("")
        domain = F.substring_index(value, "@", -1) if keep_domain else F.lit("***")
        return F.concat(start, F.lit("***@"), domain)

    return lambda frame: _masked(frame, names, "mask_email", _EMAIL, hidden)


@transform
def mask_phone(columns: str | Sequence[str], *, keep_last: int = 2) -> OneToOne:
    """`+49 (30) 901820-17` becomes `+** (**) ******-17`: every digit but the last ones is a star, all else stays.

    A phone number has 7 to 15 digits, of any script, a `+` in front or not, and spaces, brackets, dots, hyphens and slashes.

    >>> from lakelet.transforms import mask_phone
    >>> phones = spark.createDataFrame([("+49 (30) 901820-17",), ("call me",)], "p STRING")
    >>> [row.p for row in phones.transform(mask_phone("p")).collect()]
    ['+** (**) ******-17', '*******']
    """
    names = _checked("mask_phone", columns, keep_last)
    return lambda frame: _masked(frame, names, "mask_phone", _PHONE, lambda value: _replaced(value, _digits(keep_last)))


@transform
def mask_card(columns: str | Sequence[str], *, keep_last: int = 4) -> OneToOne:
    """`4111 1111 1111 1111` becomes `**** **** **** 1111`: every digit but the last ones is a star.

    A card number has 12 to 19 digits, with single spaces or hyphens between them; its check digit is not looked at.

    >>> from lakelet.transforms import mask_card
    >>> cards = spark.createDataFrame([("4111 1111 1111 1111",), ("4111",)], "c STRING")
    >>> [row.c for row in cards.transform(mask_card("c")).collect()]
    ['**** **** **** 1111', '****']
    """
    names = _checked("mask_card", columns, keep_last)
    return lambda frame: _masked(frame, names, "mask_card", _CARD, lambda value: _replaced(value, _digits(keep_last)))


@transform
def mask_iban(columns: str | Sequence[str], *, keep_last: int = 4) -> OneToOne:
    """`DE89 3704 0044 0532 0130 00` becomes `DE** **** **** **** **30 00`: country, spaces and the last characters stay.

    An IBAN has two letters, two digits and 11 to 30 letters or digits, with single spaces or without; its checksum is not looked at.

    >>> from lakelet.transforms import mask_iban
    >>> ibans = spark.createDataFrame([("DE89 3704 0044 0532 0130 00",), ("DE89",)], "i STRING")
    >>> [row.i for row in ibans.transform(mask_iban("i")).collect()]
    ['DE** **** **** **** **30 00', '****']
    """
    names = _checked("mask_iban", columns, keep_last)
    pattern = rf"(?<=..)[A-Za-z0-9](?=(?: *[A-Za-z0-9]){{{keep_last}}})"
    return lambda frame: _masked(frame, names, "mask_iban", _IBAN, lambda value: _replaced(value, pattern))


def _checked(transform: str, columns: str | Sequence[str], kept: int) -> tuple[str, ...]:
    if kept < 0:
        raise argument_error(transform, f"{kept} characters cannot be kept")
    return listed(transform, columns)


def _digits(keep_last: int) -> str:
    """Pattern of each digit that has `keep_last` digits after it."""
    return rf"\p{{Nd}}(?=(?:\P{{Nd}}*\p{{Nd}}){{{keep_last}}})"


def _replaced(value: Column, hidden: str) -> Column:
    """A star for each match of `hidden`; for each character where nothing matches."""
    return F.when(value.rlike(hidden), F.regexp_replace(value, hidden, "*")).otherwise(F.regexp_replace(value, EACH, "*"))


def _masked(frame: DataFrame, names: Sequence[str], transform: str, form: str, hidden: Callable[[Column], Column]) -> DataFrame:
    """The frame with what has the form hidden in part, and everything else as a whole."""

    def change(value: Column, data_type: DataType) -> Column:
        require_string(data_type, transform)
        return F.when(value.rlike(form), hidden(value)).otherwise(F.regexp_replace(value, EACH, "*"))

    return change_columns(frame, names, transform, change)
