"""`calibrate`: what it reads, what it prints, and how it ends."""

import json
import math
import re
import struct
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from proxy import cli, logs
from proxy.core.figures import Figures
from proxy.core.report import ChoiceReport, Outcome, Report
from proxy.core.summary import FIELD_NAMES
from proxy.core.tokens import Token
from tests.core.golden_calibration import SAID, pairs


def invoke(*arguments: object, data: str | bytes = "") -> Result:
    return CliRunner().invoke(cli.commands, ["calibrate", *map(str, arguments)], input=data)


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


GOOD = lines(*({"confidence": c, "correct": right} for c, right in pairs(500, 1, 0)))


def cells(output: str) -> dict[str, list[str]]:
    """Each line of the tables by its first cell."""
    rows = [re.split(r" {2,}", line.strip()) for line in output.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == 3}


def test_everything_is_printed() -> None:
    result = invoke("-", data=GOOD)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("500 pairs: 191 right (38.2%), 309 wrong\n")
    rows, said = cells(result.stdout), SAID[0]
    for name, value in (
        ("AUROC", said.auroc),
        ("Brier score", said.brier),
        ("expected calibration error, 10 bins of equal width", said.ece),
        ("expected calibration error, 10 bins of equal mass", said.ece_mass),
    ):
        assert rows[name][0] == f"{value:.4f}"
    assert rows["100%"][0] == "0.6180"
    assert [name for name in rows if name.endswith("%")] == [f"{share}%" for share in range(100, 0, -10)]
    assert float(rows["precision at it"][0]) >= 0.9
    assert re.search("threshold +0[.]", result.stdout)
    for _, between in rows.values():
        if between == "95 % interval":
            continue
        low, high = map(float, between.split(" to "))
        assert 0 <= low <= high <= 1
    low, high = map(float, rows["AUROC"][1].split(" to "))
    assert (low, high) == pytest.approx(said.auroc_interval, abs=0.01)
    assert "1000 bootstrap resamples, seed 0." in result.stdout


def test_the_seed_decides() -> None:
    once, again = (invoke("-", "--bootstrap", 50, data=GOOD).stdout for _ in range(2))
    other = invoke("-", "--bootstrap", 50, "--seed", 1, data=GOOD).stdout
    assert once == again != other


def test_without_resamples_there_are_no_intervals() -> None:
    result = invoke("-", "--bootstrap", 0, data=GOOD)
    assert result.exit_code == 0
    assert cells(result.stdout)["AUROC"] == ["0.8373", "-"]
    assert "Intervals" not in result.stdout


def test_another_precision() -> None:
    rows = cells(invoke("-", "--precision", 0.6, data=GOOD).stdout)
    assert float(rows["precision at it"][0]) >= 0.6
    assert float(rows["coverage at it"][0]) > 0.3


def test_a_precision_that_nothing_has() -> None:
    data = lines(*({"confidence": 0.9 - i / 100, "correct": i > 1} for i in range(4)))
    result = invoke("-", "--precision", 0.9, data=data)
    assert result.exit_code == 0
    assert "no threshold has a precision of 0.9" in result.stdout


def test_resamples_without_a_threshold_are_told() -> None:
    data = lines(*({"confidence": 0.9 - i / 100, "correct": i < 2} for i in range(6)))
    assert re.search(
        r"\(\d+ of \d+ resamples have no such threshold: coverage 0\)", invoke("-", data=data).stdout
    )


# -- what is read


@pytest.mark.parametrize(
    ("member", "of"),
    [
        ("score", lambda c: {"score": c}),
        ("a.b", lambda c: {"a": {"b": c}}),
        ("a.b", lambda c: {"a.b": c, "a": {"b": "no"}}),
        ("choices.1.p", lambda c: {"choices": [0, {"p": c}]}),
        ("/fields/~1total/probability", lambda c: {"fields": {"/total": {"probability": c}}}),
        ("/a~0b/0", lambda c: {"a~b": [c]}),
        ("/a~01", lambda c: {"a~1": c}),
    ],
)
def test_members_are_names_paths_or_pointers(member: str, of) -> None:
    data = lines(*({**of(c), "judge": {"ok": int(right)}} for c, right in pairs(40, 4, 2)))
    result = invoke("-", "--confidence", member, "--correct", "judge.ok", "--bootstrap", 0, data=data)
    assert (result.exit_code, result.stderr) == (0, "")
    assert cells(result.stdout)["AUROC"][0] == "0.8725"


@pytest.mark.parametrize("member", ["geometric_mean_probability", "/fields/~1total/min_probability"])
def test_the_lines_of_the_log_are_read_once_it_is_known_what_was_right(member: str) -> None:
    logged = []
    for c, right in pairs(40, 4, 2):
        figures = Figures()
        figures.count(Token(b"a", math.log(c or 1e-9)))
        told: dict[str, object] = {"fields": {"/total": dict.fromkeys(FIELD_NAMES, c)}}
        report = Report(choices=[ChoiceReport((0,), figures, told=told)])
        logged.append({**logs.fields(Outcome(0.0, "POST", report=report)), "correct": right})
    result = invoke("-", "--confidence", member, "--bootstrap", 0, data=lines(*logged))
    assert (result.exit_code, result.stderr) == (0, "")
    assert cells(result.stdout)["AUROC"][0] == "0.8725"


def test_blank_lines_and_a_byte_order_mark_are_nothing() -> None:
    data = (
        "\ufeff"
        + lines({"confidence": 1, "correct": True})
        + "\r\n \n"
        + lines({"confidence": 0, "correct": 0.0})
    )
    result = invoke("-", "--bootstrap", 0, data=data)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("2 pairs: 1 right")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("canary", "it is no JSON"),
        ('{"confidence":NaN,"correct":true}', "it is no JSON"),
        ('["canary"]', "it is no JSON object"),
        ('{"correct":true,"canary":1}', "it has no confidence"),
        ('{"confidence":0.5,"canary":1}', "it has no correct"),
        ('{"confidence":null,"correct":true}', "confidence is null, not a number"),
        ('{"confidence":true,"correct":true}', "confidence is a boolean, not a number"),
        ('{"confidence":"canary","correct":true}', "confidence is a string, not a number"),
        ('{"confidence":{"canary":1},"correct":true}', "confidence is an object, not a number"),
        ('{"confidence":1.5,"correct":true}', "confidence is 1.5, not from 0 to 1"),
        ('{"confidence":-1e300,"correct":true}', "confidence is -1e+300, not from 0 to 1"),
        ('{"confidence":0.5,"correct":"canary"}', "correct is a string, not true, false, 1 or 0"),
        ('{"confidence":0.5,"correct":["canary"]}', "correct is an array, not true, false, 1 or 0"),
        ('{"confidence":0.5,"correct":2}', "correct is another number, not true, false, 1 or 0"),
        ('{"confidence":0.5,"correct":null}', "correct is null, not true, false, 1 or 0"),
    ],
)
def test_a_bad_line_is_told_and_left_out(line: str, wrong: str) -> None:
    result = invoke("-", "--bootstrap", 0, data=GOOD + line + "\n")
    assert result.exit_code == 0
    assert result.stderr == f"line 501: left out: {wrong}\n"
    assert result.stdout.startswith("500 pairs: 191 right (38.2%), 309 wrong; 1 line left out\n")


def test_bytes_that_are_no_text() -> None:
    result = invoke("-", "--bootstrap", 0, data=GOOD.encode() + b"\xff\xfe\n")
    assert result.stderr == "line 501: left out: it is no JSON\n"


def test_of_many_bad_lines_ten_are_told() -> None:
    result = invoke("-", "--bootstrap", 0, data="no\n" * 25 + GOOD)
    assert result.exit_code == 0
    told = result.stderr.splitlines()
    assert told[:10] == [f"line {number}: left out: it is no JSON" for number in range(1, 11)]
    assert told[10:] == ["and 15 more left out"]


# -- how it ends


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", "error: no pair is left: nothing can be computed\n"),
        (lines({"confidence": 0.5, "correct": True}), "error: all 1 answers are right: no AUROC"),
        (lines(*[{"confidence": 0.5, "correct": 0}] * 3), "error: all 3 answers are wrong: no AUROC"),
    ],
)
def test_what_cannot_be_computed_is_said(data: str, told: str) -> None:
    result = invoke("-", data=data)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(told)


@pytest.mark.parametrize(
    "arguments",
    [
        ["/no/such/file"],
        ["-", "--precision", "0"],
        ["-", "--precision", "1.1"],
        ["-", "--bootstrap", "-1"],
        ["-", "--plot", "a.pdf"],
        [],
    ],
)
def test_wrong_arguments_end_with_2(arguments: list[str]) -> None:
    result = invoke(*arguments, data=GOOD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_many_pairs_take_seconds() -> None:
    random = Random(1)
    data = lines(
        *({"confidence": (c := random.random()), "correct": random.random() < c} for _ in range(100_000))
    )
    began = time.monotonic()
    result = invoke("-", data=data)
    assert result.exit_code == 0
    assert time.monotonic() - began < 30


# -- the diagram


def test_a_png(tmp_path: Path) -> None:
    target = tmp_path / "a.png"
    result = invoke("-", "--bootstrap", 0, "--plot", target, data=GOOD)
    assert (result.exit_code, result.stderr) == (0, "")
    data = target.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width > 500
    assert height > 500


def test_an_svg_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.SVG"
    data = GOOD.replace('"confidence"', '"$a_b^$"')  # a name, no formula
    for target in (first, second):
        result = invoke("-", "--bootstrap", 0, "--confidence", "$a_b^$", "--plot", target, data=data)
        assert (result.exit_code, result.stderr) == (0, "")
    assert first.read_bytes() == second.read_bytes()
    assert ET.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "ECE 0.121" in first.read_text()


def test_a_diagram_that_cannot_be_written(tmp_path: Path) -> None:
    result = invoke("-", "--bootstrap", 0, "--plot", tmp_path / "none" / "a.png", data=GOOD)
    assert result.exit_code == 1
    assert result.stderr == "error: --plot: No such file or directory\n"
    assert "AUROC" in result.stdout


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name == "proxy.cli.diagram" or name.startswith("matplotlib")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr("proxy.cli.diagram", raising=False)
    result = invoke("-", "--plot", tmp_path / "a.png", data=GOOD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: --plot needs matplotlib: pip install 'logprob-proxy[calibrate]'\n"
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_loaded_for_a_diagram_only() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from proxy import cli;"
        "r = CliRunner().invoke(cli.commands, ['calibrate', '-'], input=sys.stdin.read()); assert not r.exit_code;"
        "assert not [m for m in sys.modules if m.startswith(('matplotlib', 'numpy', 'aiohttp'))]"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], cwd=root, input=GOOD, text=True, check=True, timeout=60)
