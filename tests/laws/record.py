"""Writes `NAME.expected` of every capture that has none yet, once the oracles have found its answer right.

    python -m tests.laws.record [NAME ...]

Names given are written again. An answer in which nothing is inserted gets no file.
"""

import sys

from tests.laws.check import check
from tests.laws.harness import captures, rewrite


def main(names: list[str]) -> int:
    for row in captures():
        if row.expected_path.exists() and row.id not in names:
            continue
        out, _ = rewrite(row)
        try:
            check(row.body, out, row.format.name, row.framing)
        except AssertionError as wrong:
            print(f"{row.id}: not recorded: {wrong}", file=sys.stderr)
            continue
        row.expected_path.unlink(missing_ok=True)
        if out != row.body:
            row.expected_path.write_bytes(out)
            print(f"{row.id}: recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
