"""`--config FILE`: parameters of a TOML file, and errors in it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wsabie.cli.estimator_options import read_parameters
from wsabie.core.errors import InputError


def test_config_file_reads_parameters_by_name(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('dim = 50\nloss = "auc"\nmax_norm = "none"\nrank_weight = [1.0, 0.5]\n')
    assert read_parameters(file) == {"dim": 50, "loss": "auc", "max_norm": None, "rank_weight": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dimm = 5", "wsabie has no parameter dimm; did you mean dim?"),
        ("qqqq = 5", "its parameters are "),
        ("dim 5", "is not a TOML file"),
        ("\xff", "is not a TOML file"),
        ("#" * (1 << 20) + "##", "is larger than"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message) as refused:
        read_parameters(file)
    assert str(file) in str(refused.value)
    with pytest.raises(InputError, match=r"there is no file .*missing"):
        read_parameters(tmp_path / "missing")


@settings(deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text("dim=.[]{}\"'0x1_e-:TZ#, \n", max_size=60).map(str.encode),
        st.text(max_size=10).map(lambda text: f"dim = {text}".encode()),
    )
)
@example(content=b"dim = " + b"1" * 5000)
@example(content=b"dim = " + b"[" * 5000)
def test_any_bytes_give_parameters_or_one_sentence(tmp_path_factory: Any, content: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "a.toml"
    file.write_bytes(content)
    message = ""
    try:
        parameters = read_parameters(file)
    except InputError as error:
        message = str(error)
    else:
        assert all(isinstance(name, str) for name in parameters)
        return
    assert message
    assert "\n" not in message
