"""Who may speak to the page, what it gives out, and what it takes: over its real addresses."""

import contextlib
import http.client
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from shadowfit.projects.project import Project, write_project


def ask(address, path, method="GET", **headers):
    """Status, headers and text of an answer."""
    parts = urlsplit(address)
    body = headers.pop("body", None)
    with contextlib.closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace")


@pytest.fixture(scope="module")
def cookie(page):
    """What the browser has after it opened the whole address."""
    _, address = page
    token = parse_qs(urlsplit(address).query)["token"][0]
    status, headers, _ = ask(address, f"/data?token={token}&x=1")
    assert status == 303
    assert headers["location"] == "/data?x=1", "the token does not stay in the address"
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Lax" in headers["set-cookie"]
    return headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("path", ["/", "/fit", "/file/project", "/view/machine", "/_nicegui/x.js", "/?token=wrong"])
def test_nothing_without_the_token(page, path):
    status, _, text = ask(page[1], path)
    assert status == 403
    assert "shadowfit web" in text


@pytest.mark.parametrize("value", ["", "x", "shadowfit_1=x", "=;=", "a" * 4000])
def test_other_cookies_are_none(page, value):
    assert ask(page[1], "/", cookie=value)[0] == 403


def test_no_socket_without_the_token(page, cookie):
    parts = urlsplit(page[1])
    address = f"ws://{parts.netloc}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    for headers in ({}, {"cookie": cookie, "origin": "http://elsewhere.example"}):
        with pytest.raises(InvalidStatus), connect(address, additional_headers=headers):
            pass


def test_other_pages_may_not_ask(page, cookie):
    assert ask(page[1], "/fit", cookie=cookie)[0] == 200
    assert ask(page[1], "/fit", cookie=cookie, origin="http://elsewhere.example")[0] == 403
    assert ask(page[1], "/fit", cookie=cookie, origin="null")[0] == 403


def test_large_requests_are_refused(page, cookie):
    status, _, text = ask(page[1], "/fit", "POST", cookie=cookie, body=b"x" * 300_000)
    assert (status, "larger" in text) == (413, True)


def test_every_step_has_its_address(page, cookie):
    for path in ("/", "/machine", "/data", "/parameters", "/check", "/fit", "/results"):
        status, headers, text = ask(page[1], path, cookie=cookie)
        assert status == 200
        assert headers["x-frame-options"] == "SAMEORIGIN"
        assert "http://" not in text.replace("http://www.w3.org", ""), "nothing is loaded from elsewhere"


@pytest.mark.parametrize(
    "path",
    [
        *("/file/run/1/..%2f..%2f..%2fproject.toml", "/file/run/1/%2fetc%2fpasswd", "/file/run/../result.json"),
        *("/view/recording/..%2f..%2fproject.toml", "/view/run/1/..%2fcheck", "/view/run/9/report", "/file/run/1/lock"),
    ],
)
def test_no_path_leaves_the_project(page, cookie, path):
    folder, address = page
    (folder / "runs" / "1" / "result").mkdir(parents=True, exist_ok=True)
    (folder / "runs" / "1" / "lock").touch()
    assert ask(address, path, cookie=cookie)[0] in (404, 422)


def test_files_are_given_out_as_files(page, cookie):
    folder, address = page
    write_project(folder / "project.toml", Project(model="pendulum"))
    status, headers, text = ask(address, "/file/project", cookie=cookie)
    assert (status, text) == (200, 'model = "pendulum"\nout = "result"\n')
    assert headers["content-disposition"].startswith("attachment")
    result = folder / "runs" / "2" / "result"
    result.mkdir(parents=True, exist_ok=True)
    (result / "report.html").write_text("<script>1</script>")
    status, headers, text = ask(address, "/view/run/2/report", cookie=cookie)
    assert (status, text) == (200, "<script>1</script>")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "sandbox" in headers["content-security-policy"], "a page inside the page cannot speak in its name"


def test_pages_inside_the_page(page, cookie):
    folder, address = page
    write_project(folder / "project.toml", Project(model="pendulum"))
    ask(address, "/machine", cookie=cookie)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "a.csv").write_text("time,<b>\n0,1\n1,2\n2,3\n")
    text = ask(address, "/view/recording/a.csv", cookie=cookie)[2]
    numbers = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert numbers["recordings"][0]["time"] == [0.0, 1.0, 2.0]
    assert "<b>" not in text
    assert ask(address, "/view/recording/b.csv", cookie=cookie)[0] == 404
