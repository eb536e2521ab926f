"""Files that mean harm, and the check that reading them loses no record: `python tests/hostile.py <format> <files> <seed> <folder>`.

Every record of a hostile file carries a token that nothing else has. A reader may put a record into columns, the rescued column or the
text of a broken record, or refuse the whole file with FAILED_READ_FILE. A token that is found nowhere, or another exception, is a
finding.
The program prints one JSON object: files, rows, seconds, findings, and the peak memory of the process in MB. `line:whole`, `line:broken`
and `line:unknown` instead of a format read a single line of so many megabytes.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from autoloading import Program
from lakelet.autoloader.source_spec import METADATA_INTERNAL
from lakelet.base.errors import LakeletError

RESCUED = "_rescued_data"
SCHEMA = "id BIGINT,name STRING"
DEEP, WIDE = 10_000, 20_000


@dataclass(frozen=True)
class Hostile:
    """One file. `rows`: how many a reader must return (None: not decided). `lines`: broken records that must come back byte for byte.

    readable: False: the reader must refuse it; None: it may.
    """

    suffix: str
    content: bytes
    tokens: Sequence[str] = ()
    rows: int | None = None
    lines: Sequence[bytes] = ()
    readable: bool | None = True


Kind = Callable[[random.Random, str], Hostile]


def _lines(suffix: str, tag: str, records: Iterable[str | bytes], **more: Any) -> Hostile:
    """A file of lines in which `@` stands for the record's own token."""
    tokens = []
    content = b""
    for number, record in enumerate(records):
        tokens.append(f"{tag}n{number}z")
        content += (record.encode() if isinstance(record, str) else record).replace(b"@", tokens[-1].encode()) + b"\n"
    return Hostile(suffix, content, tokens, len(tokens), **more)


# --- JSON ---


def json_duplicates(rng: random.Random, tag: str) -> Hostile:
    return _lines(
        "json", tag, ['{"id":1,"id":2,"name":"@"}', '{"name":"@","name":"y"}', '{"name":"x","name":"@"}', '{"o":{"a":"@","a":1}}']
    )


def json_invalid_utf8(rng: random.Random, tag: str) -> Hostile:
    bad = bytes([rng.choice([0xFF, 0xC0, 0xED, 0xF5, 0x80])])
    return _lines("json", tag, [b'{"id":1,"name":"@' + bad + b'"}', b'{"' + bad + b'":"@"}', b'{"id":2,"name":"@"}', bad + b"@"])


def json_nul(rng: random.Random, tag: str) -> Hostile:
    return _lines(
        "json", tag, [b'{"name":"@\0"}', b'\0{"name":"@"}', b'{"name":"@"}\0', b'{"name":"@\\u0000"}', b'{"\\u0000":"@"}', b'{"id"\0:"@"}']
    )


def json_deep(rng: random.Random, tag: str) -> Hostile:
    depth = rng.choice([100, 1_000, DEEP])
    arrays = '{"name":"@","d":' + "[" * depth + "]" * depth + "}"
    objects = '{"name":"@","d":' + '{"a":' * depth + "1" + "}" * depth + "}"
    return _lines(
        "json",
        tag,
        [arrays, objects, '{"name":"@","d":' + "[" * depth, "[" * depth + '"@"', '{"name":' + '{"a":' * depth + '"@"' + "}" * depth + "}"],
    )


def json_wide(rng: random.Random, tag: str) -> Hostile:
    members = ",".join(f'"k{n}":{n}' for n in range(WIDE if rng.random() < 0.1 else 500))
    return _lines("json", tag, ['{"name":"@",' + members + "}", '{"id":1,"name":"@"}'])


def json_broken(rng: random.Random, tag: str) -> Hostile:
    shapes = [
        '{"name":"@"',
        '{"name":"@"}}',
        '{"name" "@"}',
        '{"name":"@"}{"name":"y"}',
        '{"name":"@",}',
        "@",
        '["@"]',
        '"@"',
        "{'name':@}",
        '{"name":tru,"x":"@"}',
    ]
    return _lines("json", tag, rng.sample(shapes, 5))


def json_numbers(rng: random.Random, tag: str) -> Hostile:
    odd = ["9" * 5000, "1e999999999", "-0", "1E400", "NaN", "-Infinity", "0x10", "007", "1.", "9223372036854775808", "1" + "0" * 400 + ".5"]
    return _lines("json", tag, [f'{{"id":{number},"name":"@"}}' for number in rng.sample(odd, 5)])


def json_surrogates(rng: random.Random, tag: str) -> Hostile:
    return _lines(
        "json", tag, ['{"name":"@\\ud800"}', '{"name":"\\udc00@"}', '{"\\ud83d":"@"}', '{"name":"@\\ud83d\\ude00"}', '{"o":"@\\ud800x"}']
    )


def json_names(rng: random.Random, tag: str) -> Hostile:
    odd = [
        '""',
        '"_rescued_data"',
        '"_metadata"',
        '"_file_path"',
        '"_corrupt_record"',
        '"a.b"',
        '"`"',
        '"a,b;{}()=\\n\\t"',
        '"ID"',
    ]
    return _lines("json", tag, [f'{{"id":1,{name}:"@"}}' for name in odd])


def json_noise(rng: random.Random, tag: str) -> Hostile:
    noise = rng.randbytes(rng.choice([1, 50, 3000])).replace(b"\r", b"x")
    lines = [line for line in noise.split(b"\n") if line.strip(b" \t\r")]
    return Hostile("json", noise, (), len(lines), lines)


def json_utf16(rng: random.Random, tag: str) -> Hostile:
    codec = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
    content = "".join(f'{{"name":"{tag}-{n}-\u010a"}}\n' for n in range(3)).encode(codec)
    return Hostile("json", content, [f"{tag}-{n}-\u010a" for n in range(3)], 3)


def json_long(rng: random.Random, tag: str) -> Hostile:
    pad = "x" * rng.choice([100_000, 3_000_000])
    return _lines("json", tag, [f'{{"name":"@{pad}"}}', f'{{"name":"{pad}@', f'{{"new":"{pad}@"}}'])


def json_ends(rng: random.Random, tag: str) -> Hostile:
    found = _lines("json", tag, ['{"name":"@"}'] * 4)
    return Hostile(
        "json",
        b"\xef\xbb\xbf" * (rng.random() < 0.5) + found.content.replace(b"\n", rng.choice([b"\r\n", b"\n\n", b"\n \n"])),
        found.tokens,
        4,
    )


def json_gzip(rng: random.Random, tag: str) -> Hostile:
    found = _lines("json.gz", tag, ['{"id":1,"name":"@"}'] * 50)
    packed = gzip.compress(found.content)
    shape = rng.randrange(5)
    if shape == 0:
        return Hostile("json.gz", gzip.compress(found.content[:100]) + gzip.compress(found.content[100:]), found.tokens, 50)
    if shape == 1:
        return Hostile("json.gz", packed, found.tokens, 50)
    broken = [packed[: rng.randrange(12, len(packed) - 9)], found.content, rng.randbytes(100)][shape - 2]
    return Hostile("json.gz", broken, readable=False)


# --- CSV ---


def csv_of(rng: random.Random, tag: str, header: str, rows: Sequence[str | bytes], **more: Any) -> Hostile:
    found = _lines("csv", tag, rows, **more)
    return Hostile("csv", header.encode() + b"\n" + found.content, found.tokens, more.get("rows"))


def csv_ragged(rng: random.Random, tag: str) -> Hostile:
    return Hostile(**{**vars(csv_of(rng, tag, "id,name", ["1,@", ",@", "1,@,x,y", "@", "@,@,@", "x,@"])), "rows": 6})


def csv_quotes(rng: random.Random, tag: str) -> Hostile:
    shapes = ['1,"@"', '1,"@', '1,@"', '"@"x,1', '1,"a""@"', '"1,@', '1,""@""', '1,"@\\"', '1,"@\\\\"']
    return csv_of(rng, tag, "id,name", rng.sample(shapes, 4))


def csv_bytes(rng: random.Random, tag: str) -> Hostile:
    return Hostile(**{**vars(csv_of(rng, tag, "id,name", [b"1,@\xff", b"\xff,@", b"1,@\0", b"\0,@", b"\xc3,@"])), "rows": 5})


def csv_wide(rng: random.Random, tag: str) -> Hostile:
    count = WIDE if rng.random() < 0.1 else 300
    return csv_of(rng, tag, ",".join(["name", *(f"c{n}" for n in range(count))]), ["@" + ",1" * count, "@"])


def csv_headers(rng: random.Random, tag: str) -> Hostile:
    header = rng.choice(["name,name", ",name", "name,", "NAME,Name", '"name', "name,_rescued_data", "\ufeffname,id", " name ,id", "x"])
    return csv_of(rng, tag, header, ["@,1", "@,2"])


def csv_noise(rng: random.Random, tag: str) -> Hostile:
    return Hostile("csv", b"id,name\n" + rng.randbytes(rng.choice([10, 2000])), readable=None)


def csv_long(rng: random.Random, tag: str) -> Hostile:
    return csv_of(rng, tag, "id,name", ["1,@" + "x" * 1_000_000, '1,"@' + "\n" * 2000 + '"'])


def csv_gzip(rng: random.Random, tag: str) -> Hostile:
    packed = gzip.compress(b"id,name\n" + b"1,x\n" * 100)
    return Hostile("csv.gz", packed[: rng.randrange(12, len(packed) - 9)], readable=False)


# --- Parquet ---


def _parquet(tag: str, **more: Any) -> tuple[bytes, list[str]]:
    tokens = [f"{tag}n{n}z" for n in range(20)]
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(range(20)), "name": pa.array(tokens), **more}), sink, row_group_size=7)
    return sink.getvalue(), tokens


def parquet_wide(rng: random.Random, tag: str) -> Hostile:
    content, tokens = _parquet(tag, **{f"c{n}": pa.array([n] * 20) for n in range(rng.choice([10, 500]))})
    return Hostile("parquet", content, tokens, 20)


def parquet_types(rng: random.Random, tag: str) -> Hostile:
    tokens = [f"{tag}n{n}z" for n in range(3)]
    shapes = [
        pa.array([[x] for x in tokens]),
        pa.array([{"x": x} for x in tokens]),
        pa.array([x.encode() for x in tokens]),
        pa.array(tokens).dictionary_encode(),
    ]
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"id": pa.array([1.5, 2.5, float("nan")]), "name": rng.choice(shapes[:2] + shapes[3:]), "Name": pa.array(tokens)}), sink
    )
    return Hostile("parquet", sink.getvalue(), tokens, 3)


def parquet_cut(rng: random.Random, tag: str) -> Hostile:
    content, _ = _parquet(tag)
    return Hostile("parquet", content[: rng.randrange(1, len(content) - 1)], readable=False)


def parquet_flipped(rng: random.Random, tag: str) -> Hostile:
    content = bytearray(_parquet(tag)[0])
    for _ in range(rng.choice([1, 5, 50])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return Hostile("parquet", bytes(content), readable=None)


def parquet_noise(rng: random.Random, tag: str) -> Hostile:
    return Hostile(
        "parquet",
        rng.choice([b"PAR1PAR1", b"PAR1" + rng.randbytes(200) + b"PAR1", rng.randbytes(100), b'{"id":1}\n', b"PAR1\xff\xff\xff\x7fPAR1"]),
        readable=False,
    )


KINDS: Mapping[str, Sequence[Kind]] = {
    "json": [
        json_duplicates, json_invalid_utf8, json_nul, json_deep, json_wide, json_broken, json_numbers, json_surrogates, json_names,
        json_noise,        json_utf16, json_long, json_ends, json_gzip,
    ],
    "csv": [csv_ragged, csv_quotes, csv_bytes, csv_wide, csv_headers, csv_noise, csv_long, csv_gzip],
    "parquet": [parquet_wide, parquet_types, parquet_cut, parquet_flipped, parquet_noise],
}  # fmt: skip
OPTIONS: Mapping[str, Mapping[str, str]] = {"json": {}, "csv": {"header": "true"}, "parquet": {}}


# --- reading and judging ---


def judge(file: Hostile, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the rows that a reader returned for a file."""
    wrong = [] if file.rows is None or len(rows) == file.rows else [f"{len(rows)} rows, not {file.rows}"]
    found = " ".join(str(value) for row in rows for value in row.values() if value is not None)
    wrong += [f"token {token} is lost" for token in file.tokens if token not in found]
    if file.lines:
        kept = [json.loads(row[RESCUED]) for row in rows if row.get(RESCUED)]
        texts = {
            base64.b64decode(k["_corrupt_record_base64"]) if "_corrupt_record_base64" in k else k.get("_corrupt_record", "").encode()
            for k in kept
        }
        wrong += [f"line {line[:40]!r} is lost" for line in file.lines if line not in texts]
    return wrong


def read(root: Path, name: str, files: Mapping[str, Hostile], options: Mapping[str, str], schema: str | None = SCHEMA) -> Any:
    """Rows by file name, or the named failure of the run."""
    folder = root / "in"
    folder.mkdir(parents=True)
    for file_name, file in files.items():
        (folder / file_name).write_bytes(file.content)
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    one = Program(folder, root, {"cloudFiles.format": name, **OPTIONS[name], "rescuedDataColumn": RESCUED, **options}, schema)
    try:
        one.run("*", METADATA_INTERNAL)
    except LakeletError as failure:
        return failure
    for batch in one.batches:
        for row in batch:
            rows[row.pop(METADATA_INTERNAL)["file_name"]].append(row)
    return rows


def attack(name: str, count: int, seed: int, root: Path) -> dict[str, Any]:
    """Make `count` hostile files, read them, and report."""
    rng = random.Random(seed)
    files: dict[str, Hostile] = {}
    for number in range(count):
        kind = KINDS[name][number % len(KINDS[name])]
        file = kind(rng, f"t{number}")
        files[f"{kind.__name__}_{number}.{file.suffix}"] = file
    started = time.perf_counter()
    findings: list[str] = []
    good = {file_name: file for file_name, file in files.items() if file.readable}
    rows = read(root / "together", name, good, {})
    if isinstance(rows, LakeletError):
        findings.append(f"all together: {rows}")
        rows = {}
    for file_name, file in good.items():
        findings += [f"{file_name}: {wrong}" for wrong in (judge(file, rows[file_name]) if rows else ())]
    for number, (file_name, file) in enumerate(files.items()):
        for infer in ([] if file.readable else [False]) + ([True] if number < 30 else []):
            findings += [f"{file_name}: {wrong}" for wrong in _alone(root / f"{number}{infer}", name, file_name, file, infer=infer)]
    bad = root / "bad"
    left = read(root / "kept", name, files, {"badRecordsPath": str(bad)})
    if isinstance(left, LakeletError):
        findings.append(f"with badRecordsPath: {left}")
    else:
        named = {Path(json.loads(line)["path"]).name for part in bad.rglob("bad_files/*") for line in part.read_text().splitlines()}
        findings += [
            f"{n}: neither refused nor reported with badRecordsPath" for n, f in files.items() if f.readable is False and n not in named
        ]
    return report(count, sum(map(len, rows.values())) if rows else 0, started, findings)


def _alone(root: Path, name: str, file_name: str, file: Hostile, *, infer: bool) -> list[str]:
    """Read one file: with inferred columns, or one that may be refused."""
    options = {"cloudFiles.inferColumnTypes": "true", "cloudFiles.schemaEvolutionMode": "rescue"} if infer else {}
    try:
        found = read(root, name, {file_name: file}, options, None if infer else SCHEMA)
    except Exception as failure:  # whatever it is: a finding
        return [f"alone, inferred={infer}: {type(failure).__name__}: {str(failure)[:200]}"]
    if not isinstance(found, LakeletError):
        if file.readable is False:
            return [f"alone, inferred={infer}: was not refused"]
        return [f"alone, inferred={infer}: {wrong}" for wrong in judge(file, found[file_name])]
    expected = ("FAILED_READ_FILE", "CF_FAILED_TO_INFER_SCHEMA", "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE")
    if found.code.split(".")[0] not in expected:
        return [f"alone, inferred={infer}: {found}"]
    if file.readable and found.code == "FAILED_READ_FILE":
        return [f"alone, inferred={infer}: refused: {found}"]
    return [] if found.code == "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE" or file_name in str(found) else [f"refused without its name: {found}"]


def long_line(shape: str, megabytes: int, root: Path) -> dict[str, Any]:
    """Read one line of so many megabytes: a whole record, a broken one, or one with an unknown field."""
    started = time.perf_counter()
    head, tail = {"whole": (b'{"name":"', b'"}'), "broken": (b'{"name":"', b""), "unknown": (b'{"new":"', b'"}')}[shape]
    folder = root / "in"
    folder.mkdir(parents=True)
    with (folder / "a.json").open("wb") as stream:
        stream.write(head + b"startz")
        for _ in range(megabytes):
            stream.write(b"x" * (1 << 20))
        stream.write(b"endz" + tail + b"\n")
    one = Program(folder, root, {"cloudFiles.format": "json", "rescuedDataColumn": RESCUED}, SCHEMA).run()
    text = one.last()["name" if shape == "whole" else RESCUED]
    findings = [] if "startzxxx" in text and "xxxendz" in text and len(text) >= megabytes << 20 else ["the line is not whole"]
    return report(1, 1, started, findings)


def peak_megabytes() -> int:
    """The most memory that this program had. (What getrusage tells counts the program from which this one was started.)"""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) >> 10


def report(files: int, rows: int, started: float, findings: Sequence[str]) -> dict[str, Any]:
    """What the program prints."""
    memory = peak_megabytes()
    return {"files": files, "rows": rows, "seconds": round(time.perf_counter() - started, 1), "findings": findings, "memory": memory}


if __name__ == "__main__":
    wanted, amount, seed, root = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    found = long_line(wanted[5:], amount, root) if wanted.startswith("line:") else attack(wanted, amount, seed, root)
    print(json.dumps(found))
