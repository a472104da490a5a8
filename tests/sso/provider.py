"""A small OpenID Connect provider on a port of this machine: strict in what it takes, and as wrong as a test asks."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "reviewboard", "kept-by-the-client-alone"


@cache
def key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    """`person` is who has signed in there; `token` goes over the id_token, None takes a claim out of it."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.person: dict[str, Any] = {"sub": "248289761001", "email": "vera@corp.example", "email_verified": True}
        self.token: dict[str, Any] = {}
        self.document: dict[str, Any] = {}
        self.userinfo: dict[str, Any] | None = None
        self.signed_with, self.algorithm = "its own", "RS256"
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def describe(self) -> dict[str, Any]:
        names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        ends = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", **ends, **self.document}

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key("its own").public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def authorize(self, address: str) -> str:
        """The person signs in and agrees: where their browser is sent back to."""
        asked = dict(parse_qsl(urlsplit(address).query))
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert (asked["code_challenge_method"], "openid" in asked["scope"].split()) == ("S256", True)
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        """A code for tokens, once, by the client that began with it."""
        asked = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or (form["client_id"], form["client_secret"]) != (CLIENT, SECRET):
            return None
        if (asked["code_challenge"], asked["redirect_uri"]) != (proof, form["redirect_uri"]):
            return None
        return {"access_token": "opens-userinfo", "token_type": "Bearer", "id_token": self._id_token(asked["nonce"])}

    def _id_token(self, nonce: str) -> str:
        now = int(time.time())
        said = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.person}
        claims = {name: value for name, value in (said | self.token).items() if value is not None}
        signer: Any = SECRET if self.algorithm == "HS256" else key(self.signed_with)
        return jwt.encode(claims, None if self.algorithm == "none" else signer, self.algorithm, {"kid": "one"})


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        provider: Provider = self.server.provider
        path = urlsplit(self.path).path
        provider.asked.append(path)
        pages = {
            "/.well-known/openid-configuration": provider.describe,
            "/keys": provider.keys,
            "/userinfo": lambda: provider.userinfo,
        }
        self._answer(pages[path]())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer(self.server.provider.exchange(form))

    def _answer(self, said: dict[str, Any] | None) -> None:
        body = json.dumps(said or {"error": "invalid_grant"}).encode()
        self.send_response(200 if said else 400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_details: object) -> None:
        """Not on the tests' output."""


@contextmanager
def served() -> Iterator[Provider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    server.provider = provider  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
