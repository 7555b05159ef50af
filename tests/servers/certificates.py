"""Certificates for a test's servers and clients, made with the openssl command.

    ca = Authority(folder)
    cert, key = ca.issue("broker", "IP:127.0.0.1")      # paths of PEM files
    cert, key = ca.issue("client", password="secret")   # the key is encrypted
"""
import os
import subprocess


def _openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Authority:
    """One that signs certificates of its own; its certificate is the file `path`."""

    def __init__(self, folder, name="authority"):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.path = self._path(name, "crt")
        self.key = self._path(name, "key")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.key, "-out", self.path, "-days", "2", "-subj", f"/CN={name}")

    def _path(self, name, ending):
        return os.path.join(self.folder, f"{name}.{ending}")

    def issue(self, name, alt="DNS:nobody.invalid", password=None):
        """A certificate for `alt` and its key in PKCS #8; the two paths."""
        cert, key, request = (self._path(name, e) for e in ("crt", "key", "csr"))
        extensions = self._path(name, "ext")
        guard = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        with open(extensions, "w") as f:
            f.write(f"subjectAltName={alt}\n")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", *guard,
                 "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self.key,
                 "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", cert)
        return cert, key
