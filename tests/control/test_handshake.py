"""Where the secret comes from, and what the proofs made of it depend on."""

from __future__ import annotations

import pytest

from lanewise.control.handshake import Handshake, read_secret
from lanewise.errors import InputError


@pytest.mark.parametrize("field", ["secret", "service", "client_nonce", "listener_nonce"])
def test_every_part_of_a_handshake_changes_proofs_and_tokens(field):
    parts = {"secret": "a" * 32, "service": "echo", "client_nonce": "0" * 64, "listener_nonce": "1" * 64}
    one, other = Handshake(**parts), Handshake(**{**parts, field: "f" * 64})
    assert one.client_proof != other.client_proof
    assert one.listener_proof != other.listener_proof
    assert one.data_token("0" * 64, 0) != other.data_token("0" * 64, 0)
    assert one.client_proof != one.listener_proof


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [(b"a fine long secret\n", 0o644, "every user of this machine can read"), (b"short\n", 0o600, "has 5 characters"),
     (b"x" * 2000, 0o600, "characters"), (b"\xff" * 20, 0o600, "is no text"), (None, 0, "No such file")],
)  # fmt: skip
def test_a_secret_file_that_is_not_safe_is_refused(tmp_path, content, mode, says):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(InputError, match=says):
        read_secret(file)


def test_a_secret_comes_from_the_file_before_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text("the secret of the file\n")
    file.chmod(0o600)
    monkeypatch.setenv("LANEWISE_SECRET", "the secret of the environment")
    assert read_secret(file) == "the secret of the file"
    assert read_secret(None) == "the secret of the environment"
    monkeypatch.setenv("LANEWISE_SECRET", "short")
    with pytest.raises(InputError, match="LANEWISE_SECRET has 5 characters"):
        read_secret(None)
