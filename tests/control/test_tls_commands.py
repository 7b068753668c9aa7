"""TLS by the options of the commands that listen, and of their clients."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("listeners run on Linux alone", allow_module_level=True)

from control.certificates import make
from dispatch.nodes import QUICK as SYNTHETIC
from dispatch.nodes import NodeProcess, over
from loadtest import needs
from network.network_commands import HANGS, QUICK, listener, start

import lanewise
from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import NetworkSideOptions


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A certificate that is its own CA."""
    return make(tmp_path_factory.mktemp("tls"), "listener")


def test_the_network_is_measured_over_a_listener_with_tls(own):
    files = ("--tls-certificate", str(own.file), "--tls-key", str(own.key_file))
    with listener(*files) as (_, address):
        client = start(address, *QUICK, "--tls-ca", str(own.file))
        _, errors = client.communicate(timeout=HANGS)
        assert client.returncode == 0, errors


def test_options_of_the_other_side_are_refused(own):
    for options, text in (
        ({"address": "127.0.0.1:1", "tls_certificate": own.file}, "options of the listener"),
        ({"address": "127.0.0.1:1", "tls_key": own.key_file}, "options of the listener"),
        ({"tls_ca": own.file}, "without a listener's address"),
    ):
        with pytest.raises(InputError, match=text):
            next(lanewise.measure_network(**options))
    from lanewise.api.measure import listen_network

    with pytest.raises(InputError, match="an option of the client"):
        listen_network("127.0.0.1:0", side=NetworkSideOptions(tls_ca=own.file))


@needs.loadgen
def test_a_load_test_runs_over_a_node_with_tls(own, tmp_path):
    files = ("--tls-certificate", str(own.file), "--tls-key", str(own.key_file))
    node = NodeProcess(tmp_path, "a", (*SYNTHETIC, *files))
    try:
        result = lanewise.loadtest_run(over([node], tmp_path, audit="payload", transport="tcp", tls_ca=own.file))
        assert result.audit is not None
        assert dict(result.audit.figures) == {"checked": 32.0, "wrong": 0.0}
        assert result.setup["transport"] == "tcp (one host)"
        with pytest.raises(CannotMeasure, match="says: this listener asks for TLS"):
            lanewise.loadtest_run(over([node], tmp_path, qps=500.0))
    finally:
        node.close()
