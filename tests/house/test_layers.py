"""What import-linter cannot say: what may be imported at all, and that every module stands alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "proxy"

# The standard library without clocks, sockets, files, processes, threads, logs and chance.
PURE = {
    "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "codecs", "collections", "copy", "dataclasses",
    "decimal", "enum", "functools", "heapq", "itertools", "json", "math", "operator", "re", "string", "struct", "sys",
    "types", "typing", "unicodedata", "urllib", "zlib",
}  # fmt: skip


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: relative imports hide the layer"
            yield node.module or ""


FILES = sorted(PACKAGE.rglob("*.py"))
PURE_FILES = [file for file in FILES if file.relative_to(PACKAGE).parts[0] in ("core", "formats")]


@pytest.mark.parametrize("file", PURE_FILES, ids=name_of)
def test_core_and_formats_import_nothing_that_touches_the_world(file: Path) -> None:
    own = ("proxy.core", "proxy.formats") if "formats" in file.relative_to(PACKAGE).parts else ("proxy.core",)
    for name in imports(file):
        allowed = name.startswith(own) or name.partition(".")[0] in PURE | {"orjson"}
        assert allowed, f"{name_of(file)} imports {name}"


def test_every_module_can_be_imported_first() -> None:
    # In a fresh interpreter each: an import circle shows only from some of its sides. A fork after the libraries are
    # loaded would be quicker and would hide a module that leans on another's import.
    names = [name_of(file) for file in FILES]
    broken = []
    for batch in (names[at : at + 4] for at in range(0, len(names), 4)):
        children = [
            (
                name,
                subprocess.Popen([sys.executable, "-c", f"import {name}"], cwd=ROOT, stderr=subprocess.PIPE),
            )
            for name in batch
        ]
        for name, child in children:
            _, errors = child.communicate(timeout=60)
            if child.returncode:
                broken.append(f"{name}: {errors.decode().strip().splitlines()[-1]}")
    assert not broken


def test_importing_the_package_imports_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import proxy; assert proxy.__version__;"
        "print(*(set(sys.modules) - before - {'proxy', '__future__', 'typing'}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not [
        name for name in loaded.stdout.split() if name.startswith(("proxy.", "aiohttp", "orjson", "asyncio"))
    ]


def test_the_exports_of_the_package_are_there() -> None:
    import proxy

    for name in proxy.__all__:
        assert getattr(proxy, name) is not None
        assert name in dir(proxy)
    with pytest.raises(AttributeError, match="no_such_name"):
        proxy.no_such_name  # noqa: B018


def test_top_level_is_what_it_was_meant_to_be() -> None:
    try:
        listing = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    top = {line.partition("/")[0] for line in listing.splitlines()}
    plain = {name for name in top if not name.startswith(".")}
    assert plain == {"pyproject.toml", "Dockerfile", "README.md", "proxy", "tests", "config", "deploy"}
