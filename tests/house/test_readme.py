"""What the README shows can be copied: its examples compile, its links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests" / "e2e" / "node"


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text()


def blocks(text: str, *languages: str) -> list[str]:
    fences = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [body for language, body in fences if language in languages]


def test_python_examples_compile(readme: str) -> None:
    examples = blocks(readme, "python", "py")
    assert examples
    for example in examples:
        compile(example, "README.md", "exec")


def test_node_examples_compile_strictly(readme: str) -> None:
    node = shutil.which("node")
    compiler = NODE / "node_modules" / "typescript" / "bin" / "tsc"
    if node is None or not compiler.is_file():
        pytest.skip("Node.js or the packages of tests/e2e/node are not installed")
    examples = blocks(readme, "typescript", "ts")
    assert examples
    # Below node/, where the client's types are found; git ignores it.
    folder = NODE / "build" / "readme"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = [folder / f"example-{number}.ts" for number in range(len(examples))]
    for file, example in zip(files, examples, strict=True):
        file.write_text(example)
    options = "--strict --noEmit --skipLibCheck --target es2022 --module nodenext --types node --moduleDetection force"
    result = subprocess.run(
        [node, str(compiler), *options.split(), *map(str, files)],
        cwd=NODE,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stdout


def test_links_into_the_project_lead_somewhere(readme: str) -> None:
    for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", readme):
        assert (ROOT / target).exists(), target
