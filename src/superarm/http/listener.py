"""Where to listen: an address or a socket in the file system, with TLS or without, and who may reach it there."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from superarm.errors import InvalidInput
from superarm.http.access import Tokens
from superarm.http.watched_files import file_stamps


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen: an address, or a socket in the file system; with TLS or without."""

    host: str = "127.0.0.1"
    port: int = 8800
    unix_socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    owner: str = field(default="superarm serve", kw_only=True)  # for messages

    def tls_context(self) -> ssl.SSLContext | None:
        """Return a context with certificate and key; None without TLS."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise InvalidInput(f"{self.owner} needs --tls-cert and --tls-key together, or neither")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            file_stamps(self.tls_files, self.owner)
            # with a password: OpenSSL would ask the terminal for one, and all requests wait for the answer
            context.load_cert_chain(self.tls_cert, self.tls_key, password="")
        except (OSError, ssl.SSLError) as error:
            wanted = "PEM files of a certificate and its key, without a passphrase"
            raise InvalidInput.must("--tls-cert", self.owner, wanted, error) from error
        return context

    @property
    def tls_files(self) -> dict[str, Path]:
        """The files of certificate and key, by option; empty without TLS."""
        options = {"--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        return {option: path for option, path in options.items() if path is not None}

    @contextmanager
    def bind(self) -> Iterator[socket.socket]:
        """Bind a socket, which does not listen yet; at the end it is closed, and gone from the file system."""
        path = self.unix_socket
        with self._bind_address() if path is None else self._bind_unix(path) as bound:
            inode = None if path is None else path.lstat().st_ino
            try:
                yield bound
            finally:
                with suppress(OSError):
                    # unless another process has taken the path
                    if path is not None and path.lstat().st_ino == inode:
                        path.unlink()

    def _bind_address(self) -> socket.socket:
        bound: socket.socket | None = None
        try:
            family, _, _, _, address = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            # named, or asyncio (where there is no uvloop) leaves Nagle's algorithm on: 40 ms a request
            bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError as error:
            if bound is not None:
                bound.close()
            wanted = f"free, on {self.host}:{self.port}"
            raise InvalidInput.must("--port", self.owner, wanted, error) from error
        return bound

    def _bind_unix(self, path: Path) -> socket.socket:
        if path.exists() or path.is_symlink():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise InvalidInput.must("--unix-socket", self.owner, "a new path, or a socket", str(path))
            if _is_listening(path):
                raise InvalidInput.must("--unix-socket", self.owner, "used by no other process", str(path))
            path.unlink(missing_ok=True)  # left over by a process that was killed
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old_umask = os.umask(0o117)  # for this user and this group
        try:
            bound.bind(str(path))
        except OSError as error:
            bound.close()
            raise InvalidInput.must("--unix-socket", self.owner, "a path to bind", error) from error
        finally:
            os.umask(old_umask)
        return bound


def _is_listening(path: Path) -> bool:
    """Return whether a process listens on a socket in the file system."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # it is busy, or we may not connect
            return True
        return True


def check_exposure(listener: Listener, tokens: Tokens) -> None:
    """Refuse to listen without a token anywhere but on the loopback address or a socket in the file system."""
    if listener.unix_socket is not None or tokens.required:
        return
    try:
        local = ip_address(listener.host).is_loopback
    except ValueError:
        local = listener.host == "localhost"
    if not local:
        needs = "needs --token-file (or SUPERARM_TOKEN), since others can reach it there"
        raise InvalidInput(f"{listener.owner} --host {listener.host} {needs}")
