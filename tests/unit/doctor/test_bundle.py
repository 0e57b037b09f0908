"""A bundle holds no planted secret, name or address, and still what a reader needs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.doctor.bundle import own_names, redact, safe_environment, write_bundle
from unisono.doctor.finding import warn

SECRETS = {
    "HF_TOKEN=hf_abcdefghijklmnopqrst": "hf_abcdefghijklmnopqrst",
    '{"api_token": "s3cr3t-value"}': "s3cr3t-value",
    "{'password': 'hunter2'}": "hunter2",
    "train --api-key hunter2 --steps 3": "hunter2",
    "Authorization: Bearer abc.def-ghi": "abc.def-ghi",
    "authorization: Basic dXNlcjpwYXNz": "dXNlcjpwYXNz",
    "WANDB_API_KEY: 0123456789abcdef": "0123456789abcdef",
    "aws_secret_access_key = wJalrXUtnFEMI": "wJalrXUtnFEMI",
    "clone https://bob:pa55@git.example/x.git": "pa55",
    "key AKIAIOSFODNN7EXAMPLE was used": "AKIAIOSFODNN7EXAMPLE",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF": "eyJzdWIiOiIxIn0",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n-----END OPENSSH PRIVATE KEY-----": "b3BlbnNzaA",
    "connect to 192.0.2.17:29500 failed": "192.0.2.17",
    "address 2001:db8::1 is down": "2001:db8::1",
    "address fe80::1ff:fe23:4567:890a%eth0": "fe80::1ff",
    "link/ether 0a:1b:2c:3d:4e:5f brd": "0a:1b:2c:3d:4e:5f",
    "mail alice@example.org": "alice@example.org",
    "/home/alice/data": "alice",
    "peer gpu17.rack3.corp went away": "gpu17",
    "node n17 and n17.example.org": "n17",
    "user bo started it": "bo ",
}


@pytest.mark.parametrize(("text", "secret"), SECRETS.items())
def test_planted_secrets_and_names_are_taken_out(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text, {"n17": "<host>", "n17.example.org": "<host>", "bo": "<user>"})


@pytest.mark.parametrize(
    "text",
    [
        "12:22:33.123 step 7 loss 0.5",
        "torch 2.14.1 CANN 8.3.RC1 driver 24.1.rc1",
        "std::runtime_error in c10::Error",
        "torch.distributed.run",
        "tokens 512",
        "bus 0000:C1:00.0",
    ],
)
def test_what_a_reader_needs_stays(text: str) -> None:
    assert redact(text, {}) == text


def test_names_of_machine_user_and_other_nodes_are_known() -> None:
    names = own_names(["n2.example:22"], {"MASTER_ADDR": "n1", "USER": "bo", "SLURM_JOB_NODELIST": "n3,n4"})
    assert {"n1", "n2", "n2.example", "n3", "n4"} <= {name for name, instead in names.items() if instead == "<host>"}
    assert names["bo"] == "<user>"


def test_variables_with_secret_names_are_left_out_whole() -> None:
    kept = safe_environment({"HCCL_CONNECT_TIMEOUT": "600", "TORCH_TOKEN": "x", "OPENAI_KEY": "y", "MASTER_PORT": "1"})
    assert set(kept) == {"HCCL_CONNECT_TIMEOUT", "MASTER_PORT"}


def test_no_planted_secret_is_anywhere_in_the_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    monkeypatch.setenv("MASTER_ADDR", "n17")
    text = "\n".join(SECRETS)
    (run / "logs" / "rank_0.log").write_text(text, encoding="utf-8")
    (run / "summary.json").write_text('{"password": "hunter2", "top1_accuracy": 0.9}', encoding="utf-8")
    finding = warn("H113", "both are set", "192.0.2.17, password=hunter2", "unset one")
    names = write_bundle(tmp_path / "b.zip", {"environment": [finding]}, run)
    assert {"findings.json", "environment.json", "run/logs/rank_0.log", "run/summary.json"} <= set(names)
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        everything = "\n".join(bundle.read(name).decode("utf-8") for name in bundle.namelist())
    assert [secret for secret in SECRETS.values() if secret in everything and secret != "bo "] == []
    assert "top1_accuracy" in everything


@given(st.text())
def test_no_text_makes_redaction_fall_and_twice_is_once(text: str) -> None:
    once = redact(text, {"n17": "<host>"})
    assert redact(once, {"n17": "<host>"}) == once
