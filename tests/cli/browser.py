# SPDX-License-Identifier: Apache-2.0
"""Drives Chromium without a window, through chromedriver and the WebDriver protocol (W3C), for tests of
pages."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def missing():
    """The program that this machine lacks for these tests; empty: it has all."""
    if shutil.which("chromedriver") is None:
        return "chromedriver (Debian's chromium-driver)"
    if shutil.which("chromium") is None and shutil.which("google-chrome") is None:
        return "a browser (Debian's chromium)"
    return ""


class Browser:
    """A browser with one empty page."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory()  # Chromium and its libraries write into the home folder
        folders = {name: self.home.name for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env={**os.environ, **folders})
        self.address = self.session = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.address = "http://127.0.0.1:" + line.split()[-1].rstrip(".")
                break
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"]
        if os.geteuid() == 0: # Chromium's sandbox does not work for root
            arguments.append("--no-sandbox")
        wanted = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + made["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def open(self, address):
        self.call("POST", self.session + "/url", {"url": address})

    def run(self, script):
        """Runs the body of a JavaScript function and returns its value."""
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": []})

    def press(self, selector, keys):
        """Presses keys while the element has the focus."""
        found = self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"{self.session}/element/{next(iter(found.values()))}/value", {"text": keys})

    def emulate(self, command, **parameters):
        """Sends a command of Chrome's DevTools protocol."""
        self.call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self):
        """The messages of the console since the last call."""
        return self.call("POST", self.session + "/se/log", {"type": "browser"})

    def close(self):
        if self.session is not None:
            self.call("DELETE", self.session)
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        self.driver.stdout.close()
