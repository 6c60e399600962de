"""A headless Chromium that a test can click in, by DevTools' protocol over two pipes. Needs nothing but Chromium."""
import base64
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, folder, *flags):
        (read, self._write), (self._read, write) = os.pipe(), os.pipe()
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}",
                   "--remote-debugging-pipe", "--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream",
                   "--use-fake-device-for-media-stream", *flags, "about:blank"]

        def wire():  # what Chromium reads is its descriptor 3, what it writes is 4
            high_read, high_write = os.dup(read), os.dup(write)
            os.dup2(high_read, 3), os.dup2(high_write, 4)

        self._process = subprocess.Popen(command, preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read), os.close(write)
        self._number, self._rest, self.console = 0, b"", []
        page = [target for target in self.call("Target.getTargets", whole=True)["targetInfos"] if target["type"] == "page"][0]
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._write), os.close(self._read)

    def _message(self):
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 20)
            assert part, "Chromium has left"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, whole=False, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if not whole and self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.console.append(answer["params"])
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    _session = None

    def run(self, script):
        """The value of a script, awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, condition):
        """Waits until a condition of the page holds; the test's own limit is the guard."""
        self.run(f"new Promise((done) => {{ const look = () => ({condition}) ? done() : setTimeout(look, 20); look(); }})")

    def show(self, url, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("document.body && document.body.dataset.ready && location.href !== 'about:blank'")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
