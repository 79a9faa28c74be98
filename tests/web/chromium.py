"""A headless Chromium, driven over its debugging protocol: a page is used as a person would, by what it shows."""

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

from websockets.sync.client import connect

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--remote-debugging-port=0"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
PATIENCE = 120.0

# The innermost visible elements that a selector finds and whose own text, label or value is or begins with a text.
FIND = """(selector, text) => {
  const own = (e) => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll('.q-icon').forEach((icon) => icon.remove());
    return copy.textContent;
  };
  const said = (e) => (e.getAttribute('aria-label') || own(e)).trim();
  const seen = [...document.querySelectorAll(selector)].filter((e) => e.getClientRects().length);
  const good = seen.filter((e) => said(e) === text).concat(seen.filter((e) => said(e).startsWith(text)));
  return good.find((e) => ![...good].some((o) => o !== e && e.contains(o) && said(o) === said(e))) || null;
}"""


def executable():
    """Path of a Chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """One tab."""

    def __init__(self, folder: Path):
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        self.complaints: list[str] = []
        profile = folder / "profile"
        self._process = subprocess.Popen(
            [executable(), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        file = profile / "DevToolsActivePort"
        wait(lambda: file.exists() and file.read_text().strip(), "Chromium to start")
        port = file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = json.load(answer)
        address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        self._open = contextlib.ExitStack()
        self._socket = self._open.enter_context(connect(address, max_size=None))
        self._number = 0
        for domain in ("Page", "Runtime", "DOM", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def call(self, method, **parameters):
        """One command of the protocol, and its answer."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def _note(self, message):
        """Keep what the page complains of."""
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif message.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif message.get("method") == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if not address.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")):
                self.complaints.append(f"asked for {address}")

    def js(self, expression):
        """Value of an expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (expression, found)
        return found["result"].get("value")

    def go(self, address):
        """Open an address and wait until its step is built."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def wait(self, expression, seconds=PATIENCE):
        """Wait until an expression is true."""
        wait(lambda: self.js(f"!!({expression})"), expression, seconds, lambda: self.text()[-1500:])

    def text(self):
        """All that the page says."""
        return self.js("(document.body?.innerText ?? '')")

    def see(self, text, seconds=PATIENCE):
        """Wait until the page says something."""
        self.wait(f"(document.body?.innerText ?? '').includes({json.dumps(text)})", seconds)

    def click(self, text, selector="a, button, [role=checkbox], [role=option], .q-item, .q-field, .q-expansion-item"):
        """Click at the middle of what says a text."""
        find = f"({FIND})({json.dumps(selector)}, {json.dumps(text)})"
        self.wait(find)
        box = self.js(
            f"(() => {{ const e = {find}; e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def drag(self, selector, begin, end):
        """Drag over an element, between two places in parts of its width and height."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(found)
        time.sleep(1.0)  # until a page in a frame has drawn itself: it tells nobody
        left, top, width, height = self.js(
            f"(() => {{ const e = {found}; e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            " return [r.x, r.y, r.width, r.height]; })()"
        )
        middle = tuple(0.5 * (a + b) for a, b in zip(begin, end, strict=True))
        for kind, place in (
            ("mousePressed", begin),
            ("mouseMoved", middle),
            ("mouseMoved", end),
            ("mouseReleased", end),
        ):
            x, y = left + place[0] * width, top + place[1] * height
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def fill(self, label, text, inside="body"):
        """Type into the box with a label, in place of what is there."""
        box = f"document.querySelector({json.dumps(inside)}).querySelector('input[aria-label={json.dumps(label)}]')"
        self.wait(f"{box}?.getClientRects().length")
        self.js(f"(() => {{ const e = {box}; e.scrollIntoView({{block: 'center'}}); e.focus(); e.select(); }})()")
        self.call("Input.insertText", text=text)

    def choose_files(self, paths):
        """Give files to the page's place for uploads."""
        self.wait("document.querySelector('input[type=file]')")
        found = self.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")
        self.call("DOM.setFileInputFiles", files=[str(path) for path in paths], objectId=found["result"]["objectId"])

    def look(self, path, width=1280, height=800, dark=False):
        """A picture of the page."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        time.sleep(0.7)
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    def close(self):
        """End it."""
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        self._open.close()
        self._process.terminate()
        self._process.wait(10)


def wait(done, what, seconds=PATIENCE, state=lambda: ""):
    """Wait until something is the case, and say what was waited for if it never is."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, f"waited in vain for {what}\n{state()}"
        time.sleep(0.1)
