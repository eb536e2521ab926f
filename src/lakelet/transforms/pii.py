"""Personal data: left out, hashed with a key, or replaced by tokens.

The key of `keyed_hash` and `tokenize` is not in the plan: it comes from a frame of one row that is joined to each row, and Spark's plans
show the columns of such a frame, not its values. As a literal it would be in `explain()`, in the SQL page and in the event log of Spark.
It is in the memory of the driver and of the tasks, in the blocks with which Spark sends it there, and for a moment in a temporary file of
the driver, by which pyspark hands rows to Spark. Only with `spark.io.encryption.enabled` are the blocks encrypted on disk and is there no
such file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, BinaryType, DataType

from .applied import transform
from .columns import change_columns, column, listed
from .errors import TransformError, argument_error
from .schemas import require_string

OneToOne = Callable[[DataFrame], DataFrame]

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
