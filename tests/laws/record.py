"""Writes `NAME.expected` of captures from the upstream's bytes and the oracle, not from the proxy's answer.

    python -m tests.laws.record [NAME ...]

Without names, those that have none yet. An answer in which nothing is inserted gets no file.
"""

import sys

from tests.laws.harness import captures
from tests.laws.writer import write


def main(names: list[str]) -> int:
    for row in captures():
        if row.expected_path.exists() if not names else row.id not in names:
            continue
        expected = write(row.body, row.format.name, row.framing)
        row.expected_path.unlink(missing_ok=True)
        if expected != row.body:
            row.expected_path.write_bytes(expected)
            print(f"{row.id}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
