"""The wheel that users get, and the locks that the container and these tests are made from."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import proxy

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPLOY = ROOT / "deploy"


def group(name: str) -> list[str]:
    found: list[str] = []
    for entry in PYPROJECT["dependency-groups"][name]:
        found += [entry] if isinstance(entry, str) else group(entry["include-group"])
    return found


RUNTIME: list[str] = PYPROJECT["project"]["dependencies"]
EXTRAS: list[str] = [
    line for extra in PYPROJECT["project"]["optional-dependencies"].values() for line in extra
]
LOCKS = {
    "requirements.txt": RUNTIME,
    "requirements-build.txt": group("build"),
    "requirements-tests.txt": RUNTIME + EXTRAS + group("dev"),
    "requirements-clients.txt": group("clients"),
}


@pytest.mark.parametrize("name", LOCKS)
def test_lock_fits_what_is_declared(name: str) -> None:
    """Written again by deploy/lock after every change of the dependencies."""
    pinned = {
        canonicalize_name(match[1]): match[2]
        for match in re.finditer(r"^([\w.-]+)==([\w.!]+)", (DEPLOY / name).read_text(), re.MULTILINE)
    }
    for line in LOCKS[name]:
        wanted = Requirement(line)
        version = pinned.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is not in {name}"
        assert version in wanted.specifier, f"{name} has {wanted.name} {version}"


@pytest.mark.parametrize("name", LOCKS)
def test_lock_is_hashed_and_names_no_index(name: str) -> None:
    text = (DEPLOY / name).read_text()
    for requirement in re.split(r"\n(?=[a-z])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        assert "--hash=sha256:" in requirement, requirement
    assert not re.search(r"--(?!hash)|://|file:| @ ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))


def test_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.whl")
    assert file.name.startswith(f"logprob_proxy-{proxy.__version__}-py3-none-any")
    with zipfile.ZipFile(file) as wheel:
        names = set(wheel.namelist())
        (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
        assert "logprob-proxy = proxy.cli:main" in wheel.read(entry_points).decode()
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "proxy").rglob("*.py")}
    assert "proxy/py.typed" in names
    assert sources <= names
    assert {name.partition("/")[0] for name in names} == {
        "proxy",
        f"logprob_proxy-{proxy.__version__}.dist-info",
    }


def test_every_dependency_is_bounded_below_and_not_above() -> None:
    for line in RUNTIME:
        assert [specifier.operator for specifier in Requirement(line).specifier] == [">="], line
