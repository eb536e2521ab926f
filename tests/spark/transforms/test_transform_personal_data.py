"""Personal data: masks, hashes and tokens of generated texts against plain Python, and where the key can be seen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from lakelet.transforms import TransformError, keyed_hash, mask, mask_card, mask_email, mask_iban, mask_phone, null_out, recording, tokenize

KEY = "a key of 22 characters"
FEW = settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
BLANK = " \t\n\x0b\f\r"  # Java's \s
LETTERS = st.text(alphabet="aZé🦊́ß٣७09@.+()/- \n\"'\\$*#", max_size=24)
DIGITS = "0123456789٣७"


def grouped(characters: str, sizes: list[int], gap: str) -> str:
    """The characters with `gap` after every group."""
    parts, rest = [], characters
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return gap.join([*(part for part in parts if part), rest] if rest else [part for part in parts if part])


def numbers(at_least: int, at_most: int, gaps: str) -> st.SearchStrategy[str]:
    gap = st.sampled_from(["", *gaps])
    sizes = st.lists(st.integers(1, 6), max_size=5)
    return st.builds(grouped, st.text(alphabet=DIGITS, min_size=at_least, max_size=at_most), sizes, gap)


EMAILS = st.from_regex(r"[a-zé.+]{1,8}@[a-z]{1,8}\.(de|com)", fullmatch=True)
IBANS = st.builds(
    lambda s, gap: gap.join(re.findall(".{1,4}", s)),
    st.from_regex(r"[A-Za-z]{2}[0-9]{2}[A-Z0-9]{8,32}", fullmatch=True),
    st.sampled_from(["", " "]),
)
VALUES = st.one_of(st.none(), st.just(""), LETTERS, EMAILS, IBANS, numbers(5, 21, " -"), numbers(5, 17, "./ -").map("+".__add__))


def all_hidden(text: str) -> str:
    return "*" * len(text)


def some_hidden(shown: str, text: str) -> str:
    return all_hidden(text) if shown == text else shown


def hidden_digits(text: str, keep: int) -> str:
    places = [i for i, c in enumerate(text) if c.isdecimal()]
    gone = set(places[: max(len(places) - keep, 0)])
    return some_hidden("".join("*" if i in gone else c for i, c in enumerate(text)), text)


def expected_email(text: str) -> str:
    name, at, domain = text.partition("@")
    well_formed = bool(name and at and domain) and not any(c in '@"' + BLANK for c in name + domain)
    return (name[0] if len(name) > 1 else "") + "***@" + domain if well_formed else all_hidden(text)


def expected_phone(text: str, keep: int) -> str:
    body = text.removeprefix("+")
    count = sum(c.isdecimal() for c in body)
    return hidden_digits(text, keep) if 7 <= count <= 15 and all(c.isdecimal() or c in " ().-/" for c in body) else all_hidden(text)


def expected_card(text: str, keep: int) -> str:
    count = sum(c.isdecimal() for c in text)
    tidy = text[:1].isdecimal() and text[-1:].isdecimal() and not re.search("[ -]{2}", text)
    return hidden_digits(text, keep) if tidy and 12 <= count <= 19 and all(c.isdecimal() or c in " -" for c in text) else all_hidden(text)


def expected_iban(text: str, keep: int) -> str:
    plain = text.replace(" ", "")
    ascii_only = plain.isascii() and plain.isalnum()
    spaced = (
        "  " in text
        or text != text.strip()
        or text[1:2] == " "
        or (text[3:4] == " " and text[2:3] != " ")
        or (text[4:5] == " " and text[2:3] == " ")
    )
    if not ascii_only or spaced or not plain[:2].isalpha() or not plain[2:4].isdigit() or not 15 <= len(plain) <= 34:
        return all_hidden(text)
    places = [i for i, c in enumerate(text) if c != " "]
    gone = set(places[2 : max(len(places) - keep, 2)])
    return some_hidden("".join("*" if i in gone else c for i, c in enumerate(text)), text)


def expected_mask(text: str) -> str:
    return text[:1] + "*" * (len(text) - 3) + text[-2:] if len(text) > 3 else all_hidden(text)


def digest(message: bytes) -> bytes:
    return hmac.new(KEY.encode(), message, hashlib.sha256).digest()


KEPT = {"phone": (0, 2, 7, 9), "card": (0, 4, 13), "iban": (0, 4, 14, 40)}
EXPECTED = {
    "hashed": lambda text: digest(text.encode()).hex(),
    "token": lambda text: "tok_" + base64.urlsafe_b64encode(digest(b"person\0" + text.encode())).decode()[:22],
    "masked": expected_mask,
    "email": expected_email,
    "nothing": lambda text: None,
    **{f"phone{keep}": partial(expected_phone, keep=keep) for keep in KEPT["phone"]},
    **{f"card{keep}": partial(expected_card, keep=keep) for keep in KEPT["card"]},
    **{f"iban{keep}": partial(expected_iban, keep=keep) for keep in KEPT["iban"]},
}


@pytest.mark.slow
@FEW
@given(values=st.lists(VALUES, min_size=300, max_size=400))
def test_every_generated_text_is_masked_as_plain_python_does_it(spark: Any, values: list[str | None]) -> None:
    frame = spark.createDataFrame([(v,) for v in values], "given STRING").select("given", *(F.col("given").alias(n) for n in EXPECTED))
    for step in (
        keyed_hash("HASHED", key=KEY),
        tokenize("token", key=KEY, domain="person"),
        mask("masked", keep_first=1, keep_last=2),
        mask_email("email"),
        null_out("nothing"),
        *(mask_phone(f"phone{keep}", keep_last=keep) for keep in KEPT["phone"]),
        *(mask_card(f"card{keep}", keep_last=keep) for keep in KEPT["card"]),
        *(mask_iban(f"iban{keep}", keep_last=keep) for keep in KEPT["iban"]),
    ):
        frame = frame.transform(step)
    for row in frame.collect():
        for name, expected in EXPECTED.items():
            assert row[name] == (None if row.given is None else expected(row.given)), (name, row.given)


def test_a_number_with_no_more_characters_than_are_kept_is_hidden_as_a_whole(spark: Any) -> None:
    frame = spark.createDataFrame([("123-4567", "4111 1111 1111", "DE89 3704 0044 053")], "p STRING, c STRING, i STRING")
    whole = frame.transform(mask_phone("p", keep_last=7)).transform(mask_card("c", keep_last=12)).transform(mask_iban("i", keep_last=13))
    assert tuple(whole.first()) == ("********", "**************", "******************")
    less = frame.transform(mask_phone("p", keep_last=6)).transform(mask_card("c", keep_last=11)).transform(mask_iban("i", keep_last=12))
    assert tuple(less.first()) == ("*23-4567", "*111 1111 1111", "DE*9 3704 0044 053")


def test_fields_of_structs_are_masked_in_their_place_and_a_null_struct_stays_null(spark: Any) -> None:
    schema = "id INT, `user` STRUCT<`e.mail`: STRING, contact: STRUCT<phone: STRING, n: INT>>, `a.b` STRING"
    rows = [(1, ("a", ("+49 30 9018200", 5)), "Ann Lee"), (2, None, None), (3, ("b", None), "Bo")]
    frame = spark.createDataFrame(rows, schema).transform(mask_phone("USER.contact.Phone")).transform(mask("A.B"))
    assert frame.schema.simpleString() == spark.createDataFrame([], schema).schema.simpleString()
    got = [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]
    assert got[0] == {"id": 1, "user": {"e.mail": "a", "contact": {"phone": "+** ** *****00", "n": 5}}, "a.b": "*******"}
    assert got[1] == {"id": 2, "user": None, "a.b": None}
    assert got[2] == {"id": 3, "user": {"e.mail": "b", "contact": None}, "a.b": "**"}


def test_numbers_and_bytes_are_hashed_as_their_text_and_as_they_are(spark: Any) -> None:
    from decimal import Decimal

    frame = spark.createDataFrame([(7, Decimal("1.50"), bytearray(b"\x00\xff"))], "i INT, d DECIMAL(5, 2), b BINARY")
    row = frame.transform(keyed_hash(["i", "d", "b"], key=KEY.encode())).first()
    assert tuple(row) == (digest(b"7").hex(), digest(b"1.50").hex(), digest(b"\x00\xff").hex())


def test_a_long_key_is_hashed_first_as_the_standard_says(spark: Any) -> None:
    key = b"k" * 100
    row = spark.createDataFrame([("v",)], "v STRING").transform(keyed_hash("v", key=key)).first()
    assert row.v == hmac.new(key, b"v", "sha256").hexdigest()


def test_the_key_is_in_no_plan_and_in_no_record(spark: Any) -> None:
    """The one place to check is the text of all plans, which is also what Spark's SQL page and its event log show."""
    with recording() as applied:
        frame = (
            spark.createDataFrame([("v", "w")], "v STRING, w STRING").transform(keyed_hash("v", key=KEY)).transform(tokenize("w", key=KEY))
        )
    frame.collect()
    execution = frame._jdf.queryExecution()
    shown = [execution.toString(), execution.explainString(spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted"))]
    shown += [execution.logical().prettyJson(), execution.optimizedPlan().prettyJson(), execution.executedPlan().treeString()]
    pads = [bytes(b ^ pad for b in KEY.encode().ljust(64, b"\0")) for pad in (0x36, 0x5C)]
    for text in map(str, [*shown, applied, keyed_hash("v", key=KEY)]):
        for secret in (KEY.encode(), *pads):
            head = secret[:8]
            signed = ", ".join(str(b) for b in head)
            assert not any(
                form in text for form in (head.decode(), head.hex(), head.hex().upper(), signed, base64.b64encode(secret[:9]).decode())
            )
    assert [str(one) for one in applied] == ["keyed_hash(columns='v')", "tokenize(columns='w', domain='', prefix='tok_', length=22)"]


@pytest.mark.parametrize("key", ["", "short", b"0123456789abcde", None, 16])
def test_a_key_that_protects_nothing_is_refused(key: Any) -> None:
    for make in (keyed_hash, tokenize):
        with pytest.raises(TransformError) as caught:
            make("v", key=key)
        assert caught.value.code == "TRANSFORM_ARGUMENT"
        assert not key or str(key) not in str(caught.value).replace("16 random", "")


def test_a_type_that_cannot_be_masked_is_refused(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS n, array('a') AS l, named_struct('x', 1) AS s")
    wrong = [mask("n"), mask_email("l"), keyed_hash("s", key=KEY), tokenize("l", key=KEY), mask_iban("s.x")]
    for step in wrong:
        with pytest.raises(TransformError, match="TRANSFORM_TYPE"):
            frame.transform(step)
