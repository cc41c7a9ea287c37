"""An upstream that answers every request with a recorded body: the one whose name stands first in the path.

`/openai-chat/T00/v1/chat/completions` is answered with `tests/captures/openai-chat/T00.upstream.*`.
"""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CAPTURES = Path(__file__).parents[2] / "captures"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._take()
        folder, name = self.path.split("/")[1:3]
        facts = tomllib.loads((CAPTURES / folder / f"{name}.toml").read_text())
        (file,) = (CAPTURES / folder).glob(f"{name}.upstream.*")
        body = file.read_bytes()
        self.send_response(facts["status"])
        self.send_header("Content-Type", facts["content_type"])
        if file.suffix == ".json":
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(body), 101):  # reads that fit nothing
            piece = body[at : at + 101]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _take(self) -> None:
        """Reads the request's body, so that the connection can be used again."""
        if "Content-Length" in self.headers:
            self.rfile.read(int(self.headers["Content-Length"]))
            return
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            self.rfile.read(size + 2)
        self.rfile.readline()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def replaying() -> Iterator[str]:
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
