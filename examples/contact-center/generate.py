"""Write sample data of the contact center: `OUT/landing`, the input, and `OUT/expected`, every table's right content after each drop.

The expected tables are computed from the input by other means than the pipeline's; `check.py` compares them with the stored ones.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sampledata import SampleError, generate, write_expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="the sample's folder")
    parser.add_argument("--rows", type=int, default=20_000, help="lines to write, over all drops (default 20000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same files (default 1)")
    parser.add_argument("--drops", type=int, default=1, help="in how many drops the rows arrive (default 1)")
    parser.add_argument("--append", action="store_true", help="continue the sample that OUT holds")
    parser.add_argument("--beyond-watermark", action="store_true", help="some entries lie behind the watermark")
    given = parser.parse_args()
    try:
        written = generate(
            given.out, rows=given.rows, seed=given.seed, drops=given.drops, append=given.append, beyond_watermark=given.beyond_watermark
        )
        write_expected(given.out)
    except SampleError as error:
        sys.exit(str(error))
    for drop in written.drops:
        print(f"drop {drop.drop}: {drop.lines:,} lines in {len(drop.files)} files")
    print(f"Wrote {given.out / 'landing'} and {given.out / 'expected'}.")


if __name__ == "__main__":
    main()
