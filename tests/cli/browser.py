"""A page in headless Chromium, driven through its debugging pipe with the standard library alone.

Protocol: https://chromedevtools.github.io/devtools-protocol/ ; messages are JSON, each ended by a
zero byte, on file descriptors 3 and 4 of the browser."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from program import each_process


def is_snap(path):
    """Whether the program runs in a snap, which can't read /tmp. Ubuntu's chromium-browser is a script that starts
    one, and /snap/bin/chromium is a link to /usr/bin/snap."""
    with open(path, "rb") as file:
        head = file.read(4096)
    return os.path.basename(os.path.realpath(path)) == "snap" or (head[:2] == b"#!" and b"/snap/" in head)


def find():
    """The browser's path, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and not is_snap(path):
            return path
    return None


class Browser:
    """One browser with one page."""

    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.from_, to_write = os.pipe()

        # Of the four descriptors, to_write is the largest, so that it is not 3.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}', path, "--headless", "--no-sandbox",
             "--disable-gpu", "--no-first-run", "--disable-extensions", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile.name, "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", timeout=10)
            self.process.wait(10)
        except (OSError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.from_)
        self.profile.cleanup()

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready = select.select([self.from_], [], [], max(0, deadline - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.from_, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, timeout=500, **params):
        """Calls a method. Events that arrive before its reply are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait(self, method, timeout=500):
        """Waits for an event."""
        deadline = time.monotonic() + timeout
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(deadline))

    def evaluate(self, expression):
        """The value of an expression in the page; of a promise, once it is fulfilled."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def cpu_seconds(self):
        """CPU seconds that the browser's processes have used so far."""
        stat = {pid: text.rpartition(")")[2].split() for pid, text in each_process("stat")}
        own = [self.process.pid]
        for parent in own: # and, at the end of the list, what it has started
            own += [pid for pid, fields in stat.items() if int(fields[1]) == parent]
        return sum(int(ticks) for pid in own for ticks in stat[pid][11:13]) / os.sysconf("SC_CLK_TCK")

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def wait_until_painted(self):
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path, link="", width=1280, height=900, script=True, dark=False):
        """Opens a file at a link into it ("#..."). Returns the seconds until it is loaded and painted:
        elapsed time or CPU time, whichever is less, because other programs may use the machine too."""
        self.events.clear()
        self.resize(width, height)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank") # else another link alone loads nothing
        self.wait("Page.loadEventFired")
        self.events.clear()
        start, used = time.monotonic(), self.cpu_seconds()
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + link)
        self.wait("Page.loadEventFired")
        if script:
            self.wait_until_painted()
        return min(time.monotonic() - start, self.cpu_seconds() - used)

    def complaints(self):
        """What the page wrote to the console, and its exceptions."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in kinds]

    def requests(self):
        """The addresses that the page requested."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]
