"""Personal data: left out, hashed with a key, replaced by tokens, or masked with the form of the value kept.

The key of `keyed_hash` and `tokenize` is not in the plan. It comes from a frame of one row that is joined to each row, and Spark's plans
show the columns of such a frame, not its values. As a literal it would be in `explain()`, in the SQL page and in the event log of Spark. It
is in the memory of the driver and of the tasks, and in the blocks with which Spark sends it there. For a moment it is in a temporary file
of the driver, by which pyspark hands rows to Spark. Only with `spark.io.encryption.enabled` are the blocks encrypted on disk and is there
no such file.

Masks know the forms of e-mail addresses, phone numbers, card numbers and IBANs. What does not have the form is masked as a whole, each
character by `*`, so that nothing passes because it is malformed. So is a number with no more digits than `keep_last`, of which nothing
would be hidden. NULL stays NULL, the empty text empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, BinaryType, DataType

from .applied import OneToOne, transform
from .columns import change_columns, column, listed, require_string
from .errors import TransformError, argument_error

_INNER, _OUTER = "__lakelet_inner_pad", "__lakelet_outer_pad"
_BLOCK = 64  # bytes of a block of SHA-256
_SHORTEST = 16  # bytes of a key
EACH = "(?s)."
"""Pattern of one character, line ends included."""


@transform
def null_out(columns: str | Sequence[str]) -> OneToOne:
    """Replace values by NULL of the same type; columns, or fields of structs by their path (`user.email`).

    >>> from lakelet.transforms import null_out
    >>> people = spark.sql("SELECT 1 AS id, named_struct('email', 'a@b.de', 'age', 7) AS user")
    >>> people.transform(null_out("user.email")).first()
    Row(id=1, user=Row(email=None, age=7))
    """
    names = listed("null_out", columns)
    return lambda frame: change_columns(frame, names, "null_out", lambda value, data_type: F.lit(None).cast(data_type))


@transform
def mask(columns: str | Sequence[str], *, keep_first: int = 0, keep_last: int = 0, character: str = "*") -> OneToOne:
    """Replace each character of a text by `character`, but for the first and last ones that are kept.

    A text that is not longer than what would be kept is masked as a whole. A character is a Unicode code point; NULL stays NULL, the empty
    text empty. The length stays visible.

    >>> from lakelet.transforms import mask
    >>> names = spark.createDataFrame([("Zoë 🦊 Ng",), ("Al",), (None,)], "name STRING")
    >>> names.transform(mask("name", keep_first=1, keep_last=1)).collect()
    [Row(name='Z******g'), Row(name='**'), Row(name=None)]
    """
    names = listed("mask", columns)
    if keep_first < 0 or keep_last < 0 or len(character) != 1 or character in "$\\":
        raise argument_error("mask", "keep_first and keep_last must be 0 or more, character one character other than $ and \\")

    def change(value: Column, data_type: DataType) -> Column:
        require_string(data_type, "mask")
        hidden = F.length(value) - (keep_first + keep_last)
        middle = F.substr(value, F.lit(keep_first + 1), hidden)
        shown = F.concat(F.substring(value, 1, keep_first), F.regexp_replace(middle, EACH, character), F.right(value, F.lit(keep_last)))
        return F.when(hidden > 0, shown).otherwise(F.regexp_replace(value, EACH, character))

    return lambda frame: change_columns(frame, names, "mask", change)


@transform
def keyed_hash(columns: str | Sequence[str], *, key: str | bytes) -> OneToOne:
    """Replace values by their HMAC-SHA-256, 64 hexadecimal digits: equal values stay equal; without the key nobody can try values out.

    Args:
        columns: Columns, or fields of structs by their path, of simple types. Binary is hashed as it is, everything else as Spark casts
            it to text, in UTF-8: `1.0` and `1.00` differ, as do `A` and `a`. NULL stays NULL; the empty text has a hash.
        key: At least 16 bytes (a text: in UTF-8), as from `dbutils.secrets.get`. It is neither recorded nor in any plan (see the module).

    Raises:
        TransformError: TRANSFORM_ARGUMENT for a short key, TRANSFORM_TYPE for nested values.

    >>> from lakelet.transforms import keyed_hash
    >>> hashed = spark.createDataFrame([("a@b.de",)], "email STRING").transform(keyed_hash("email", key="correct horse battery"))
    >>> import hmac
    >>> hashed.first().email == hmac.new(b"correct horse battery", b"a@b.de", "sha256").hexdigest()
    True
    """
    names, pads = listed("keyed_hash", columns), _pads("keyed_hash", key)
    return lambda frame: _with_key(frame, names, "keyed_hash", pads, _hmac)


@transform
def tokenize(columns: str | Sequence[str], *, key: str | bytes, domain: str = "", prefix: str = "tok_", length: int = 22) -> OneToOne:
    """Replace values by short tokens: `prefix` and `length` letters, digits, `-` and `_` (6 bits each) of an HMAC-SHA-256.

    Equal values of one `domain` get the same token in all tables, so that they can be joined; in another domain they get another one.
    With 22 characters (132 bits) two values with one token are not to be expected; with fewer they are: 8 characters suffice for some
    thousand values. As for `keyed_hash`: the types, NULL, the empty text, and the key.

    >>> from lakelet.transforms import tokenize
    >>> people = spark.createDataFrame([("ann",), ("ann",), ("bob",)], "name STRING")
    >>> tokens = [row.name for row in people.transform(tokenize("name", key=b"0123456789abcdef", domain="person")).collect()]
    >>> tokens[0] == tokens[1] != tokens[2], len(tokens[0])
    (True, 26)
    """
    names, pads = listed("tokenize", columns), _pads("tokenize", key)
    if not 4 <= length <= 43:
        raise argument_error("tokenize", f"length={length!r} is not between 4 and 43")
    start = domain.encode() + b"\0"

    def token(message: Column) -> Column:
        digest = F.unhex(_hmac(F.concat(F.lit(bytearray(start)), message)))
        return F.concat(F.lit(prefix), F.substring(F.translate(F.base64(digest), "+/=", "-_"), 1, length))

    return lambda frame: _with_key(frame, names, "tokenize", pads, token)


def _pads(transform: str, key: str | bytes) -> tuple[bytearray, bytearray]:
    """The two keys of HMAC (RFC 2104)."""
    if not isinstance(key, str | bytes):
        raise argument_error(transform, f"the key is a {type(key).__name__}, neither text nor bytes")
    raw = key.encode() if isinstance(key, str) else key
    if len(raw) < _SHORTEST:
        raise argument_error(transform, f"the key has {len(raw)} bytes", f"Take at least {_SHORTEST} random bytes from a secret")
    if len(raw) > _BLOCK:
        raw = sha256(raw).digest()
    block = raw.ljust(_BLOCK, b"\0")
    return bytearray(b ^ 0x36 for b in block), bytearray(b ^ 0x5C for b in block)


def _with_key(
    frame: DataFrame, names: Sequence[str], transform: str, pads: tuple[bytearray, bytearray], hashed: Callable[[Column], Column]
) -> DataFrame:
    """The frame with the values hashed; the key is a row that is joined, and gone afterwards."""

    def change(value: Column, data_type: DataType) -> Column:
        if not isinstance(data_type, AtomicType):
            raise TransformError(
                "TRANSFORM_TYPE", f"{transform} cannot hash {data_type.simpleString()}", todo="Name its fields, or flatten it"
            )
        return hashed(value if isinstance(data_type, BinaryType) else value.cast("string").cast("binary"))

    key = frame.sparkSession.createDataFrame([pads], f"{_INNER} BINARY, {_OUTER} BINARY")
    joined = frame.crossJoin(F.broadcast(key))
    changed = change_columns(joined, names, transform, change)
    return changed.select(*map(column, frame.columns))


def _hmac(message: Column) -> Column:
    inner = F.unhex(F.sha2(F.concat(F.col(_INNER), message), 256))
    return F.sha2(F.concat(F.col(_OUTER), inner), 256)


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

    A card number has 12 to 19 digits, with single spaces or hyphens between them; its check digit is not checked.

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

    An IBAN has two letters, two digits and 11 to 30 letters or digits, with single spaces or without; its checksum is not checked.

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
