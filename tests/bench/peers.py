"""What is compared: nothing in between, nginx with a Lua body filter, and logprob-proxy.

Law: each peer is pinned to the one core on which nothing else of the bench runs, and is charged the CPU time and
the memory of all its processes.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

ROOT: Final = Path(__file__).parents[2]
T = TypeVar("T")

DIRECT: Final = "direct"
NGINX: Final = "nginx + Lua"
PROXY: Final = "logprob-proxy"
_START_SECONDS: Final = 30.0

_MODULES: Final = ("ndk_http_module.so", "ngx_http_lua_module.so")
_MODULE_FOLDERS: Final = (
    Path("/usr/lib/nginx/modules"),
    Path("/usr/lib64/nginx/modules"),
    Path("/usr/share/nginx/modules"),
)

# The filter a careful person would write: an event, or a whole answer, is put together before the pattern sees it
# (else a number that is cut over two reads becomes a wrong probability and a broken number). Events mostly come
# whole, so the way through without holding is the common one.
_NGINX_CONF: Final = r"""
@modules@
daemon off;
worker_processes 1;
pid @folder@/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log @folder@/access.log;
  client_body_temp_path @folder@/body;
  proxy_temp_path @folder@/proxy;
  fastcgi_temp_path @folder@/fastcgi;
  uwsgi_temp_path @folder@/uwsgi;
  scgi_temp_path @folder@/scgi;
  keepalive_requests 1000000;
  init_by_lua_block {
    local exp, format, gsub, tonumber = math.exp, string.format, ngx.re.gsub, tonumber
    local function inserted(m)
      return m[0] .. ',"probability":' .. format("%.17g", exp(tonumber(m[1])))
    end
    function annotate(text)
      return (gsub(text, [["logprob": ?(-?[0-9.eE+-]+)]], inserted, "jo"))
    end
  }
  upstream api { server 127.0.0.1:@upstream@; keepalive 128; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:@port@ backlog=1024;
    location / {
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Accept-Encoding identity;
      proxy_buffering off;
      proxy_buffer_size 16k;
      proxy_buffers 8 16k;
      header_filter_by_lua_block {
        ngx.header.content_length = nil
        ngx.ctx.events = ngx.header.content_type:find("text/event-stream", 1, true) ~= nil
      }
      body_filter_by_lua_block {
        local ctx, text, last = ngx.ctx, ngx.arg[1], ngx.arg[2]
        if ctx.events then
          if ctx.rest then
            text, ctx.rest = ctx.rest .. text, nil
          end
          if not last and text:sub(-2) ~= "\n\n" then
            local complete = text:match("^.*\n\n")
            ctx.rest = text:sub((complete and #complete or 0) + 1)
            text = complete or ""
          end
          ngx.arg[1] = annotate(text)
          return
        end
        local held = ctx.held
        if not held then
          held = {}
          ctx.held = held
        end
        held[#held + 1] = text
        ngx.arg[1] = last and annotate(table.concat(held)) or ""
      }
    }
  }
}
"""


class NotInstalledError(Exception):
    """A peer that is not to be had here; the text says what is missing."""


@dataclass
class Peer:
    """Something that listens."""

    name: str
    port: int
    process: subprocess.Popen | None = None

    @property
    def annotates(self) -> bool:
        return self.process is not None

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far, by the scheduler's count where there is one, else in ticks."""
        return sum(_cpu_seconds(pid) for pid in self._pids())

    def peak_bytes(self) -> int:
        """The most memory that was resident, summed over its processes: what they share is counted in each."""
        return sum(_peak_bytes(pid) for pid in self._pids())

    def _pids(self) -> list[int]:
        if self.process is None:
            return []
        found = [self.process.pid]
        parents = _parents()
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found


def _parents() -> dict[int, int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int(_stat(int(folder.name))[1])
            except OSError:
                pass  # it ended meanwhile
    return parents


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu_seconds(pid: int) -> float:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    except OSError:
        fields = _stat(pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes(pid: int) -> int:
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


# -- cores


def cores() -> tuple[int, int]:
    """The core of the peers, and the one of upstream and load; the same where there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[-1], usable[0]


def busy_seconds(core: int) -> float:
    """For how long the core has worked so far, for whomever."""
    match = re.search(rf"^cpu{core} (.+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    if match is None:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, match[1].split()[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started in here runs on that core, and all that it starts in its turn."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# -- starting and ending


@contextmanager
def upstream(core: int) -> Iterator[int]:
    """The paced upstream; its port."""
    with _running(core, [sys.executable, "-m", "tests.bench.upstream"]) as child:
        yield int(child.says(r"^(\d+)\n"))


@contextmanager
def direct(upstream_port: int, core: int) -> Iterator[Peer]:
    """Nothing between load and upstream."""
    yield Peer(DIRECT, upstream_port)


@contextmanager
def nginx(upstream_port: int, core: int) -> Iterator[Peer]:
    """nginx with a worker whose body filter inserts by pattern. Raises NotInstalledError."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise NotInstalledError("nginx is not installed (Debian: nginx)")
    folders = [folder for folder in _MODULE_FOLDERS if all((folder / name).exists() for name in _MODULES)]
    if not folders:
        raise NotInstalledError("nginx has no Lua module (Debian: libnginx-mod-http-lua)")
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="bench-nginx-") as folder:
        filled = {
            "modules": "\n".join(f"load_module {folders[0] / name};" for name in _MODULES),
            "folder": folder,
            "upstream": str(upstream_port),
            "port": str(port),
        }
        conf = Path(folder) / "nginx.conf"
        conf.write_text(re.sub(r"@(\w+)@", lambda match: filled[match[1]], _NGINX_CONF))
        with _running(core, [program, "-p", folder, "-c", str(conf), "-e", "stderr"]) as child:
            child.listens(port)
            yield Peer(NGINX, port, child.process)


@contextmanager
def logprob_proxy(upstream_port: int, core: int) -> Iterator[Peer]:
    """The proxy as `serve` runs it, by the interpreter that runs this."""
    command = [
        *(sys.executable, "-c", "from proxy.cli import main; main()", "serve"),
        *("--upstream", f"http://127.0.0.1:{upstream_port}"),
        *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
    ]
    with _running(core, command) as child:
        yield Peer(PROXY, int(child.says(r"listening on http://127\.0\.0\.1:(\d+)\n")), child.process)


ALL: Final = (direct, nginx, logprob_proxy)


@dataclass
class Metered:
    """The proxy with a stop watch around its metric calls."""

    port: int
    _child: _Child
    _asked: int = 0

    def spent(self) -> tuple[float, float]:
        """CPU so far, in seconds: in metric calls, and of the whole process."""
        stdin = self._child.process.stdin
        assert stdin is not None
        stdin.write(b"\n")
        stdin.flush()
        self._asked += 1
        found = self._child.says(rf"(?s)(?:.*^spent ([^\n]+)\n){{{self._asked}}}")
        calls, whole = map(float, found.split())
        return calls, whole


@contextmanager
def metered(upstream_port: int, core: int, *, files: bool) -> Iterator[Metered]:
    """With `files`, it counts as one of several workers does."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, "-m", "tests.bench.metered", str(upstream_port)]
        variables = {"PROMETHEUS_MULTIPROC_DIR": folder} if files else {}
        with _running(core, [*command, *variables.values()], variables) as child:
            yield Metered(int(child.says(r"listening on http://127\.0\.0\.1:(\d+)\n")), child)


@dataclass
class _Child:
    process: subprocess.Popen
    said: Path
    """Where what it prints goes: a file never makes it wait, as a full pipe would."""

    def says(self, pattern: str) -> str:
        """Waits until it has printed that; the pattern's group."""
        found = self._until(lambda: re.search(pattern, self.said.read_text(), re.MULTILINE))
        return found[1]

    def listens(self, port: int) -> None:
        """Waits until it accepts connections."""
        self._until(lambda: _accepts(port) or None)

    def _until(self, ready: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + _START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            found = ready()
            if found is not None:
                return found
            time.sleep(0.02)
        raise RuntimeError(f"{self.process.args!r} did not start: {self.said.read_text()}")


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def _running(
    core: int, command: list[str], variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[_Child]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGPROB_PROXY_")}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        said = Path(folder) / "said"
        with said.open("w") as output, on_core(core):
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**environment, **variables},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        with process:
            try:
                yield _Child(process, said)
            finally:
                _end(process)


def _end(process: subprocess.Popen) -> None:
    # The first signal may begin a drain; the second ends it.
    for patience in (0.5, 5.0):
        process.terminate()
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        return
    process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
