#!/usr/bin/env python3
"""A program that takes llama-server's command line and serves, dies or clings on as it is told.

`STAND_IN` holds words: `dies` (exits with 3), `loads` (503 at first), `clings` (ignores SIGTERM),
`spawns` (starts a child in a session of its own; its number is printed).
"""

import http.server
import json
import os
import signal
import subprocess
import sys

WORDS = os.environ.get("STAND_IN", "").split()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self) -> None:
        Handler.asked += 1
        ready = "loads" not in WORDS or Handler.asked > 3
        body = json.dumps({"status": "ok" if ready else "loading"}).encode()
        self.send_response(200 if ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    if "--version" in sys.argv:
        print("version: 1234 (abcdef)")
        return
    print("loading the model", flush=True)
    if "dies" in WORDS:
        print("error: not enough memory", file=sys.stderr)
        sys.exit(3)
    if "clings" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "spawns" in WORDS:
        sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
        print(f"child {sleeper.pid}", flush=True)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


main()
