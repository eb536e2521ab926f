"""`import lakelet`: the names, their documentation, and the classes of errors."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import lakelet
from lakelet.base.errors import CODES, ExitCode, kind_of
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text()


def test_every_public_name_exists_and_is_on_the_page() -> None:
    for name in lakelet.__all__:
        assert getattr(lakelet, name) is not None
    assert [name for name in lakelet.__all__ if f"`{name}" not in PAGE and name != "__version__"] == []


def test_importing_the_package_imports_neither_pyspark_nor_pandas() -> None:
    code = "import sys, lakelet; print({'pyspark', 'pandas', 'pyarrow', 'deltalake'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "lakelet", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"lakelet {lakelet.__version__}"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNKNOWN_DATASET", lakelet.DefinitionError),
        ("CF_PATH_IS_NOT_A_DIRECTORY", lakelet.SourceError),
        ("FAILED_READ_FILE", lakelet.SourceError),
        ("EXPECTATION_VIOLATION", lakelet.ExpectationFailed),
        ("LAKELET_STORAGE_BUSY", lakelet.StateError),
        ("FLOW_FAILED", lakelet.FlowError),
        ("JAVA_MISSING", lakelet.MachineError),
    ],
)
def test_an_error_is_of_the_kind_of_its_code(code: str, kind: type[lakelet.LakeletError]) -> None:
    error = lakelet.LakeletError(code, "what happened", why="because")
    assert type(error) is kind
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.what, again.why) == (kind, code, "what happened", "because")


def test_all_errors_of_a_pipeline_together_are_a_definition_error() -> None:
    assert issubclass(lakelet.DefinitionErrors, lakelet.DefinitionError)


def test_kinds_follow_exit_codes() -> None:
    for code, info in CODES.items():
        kind = kind_of(code)
        assert kind is not lakelet.LakeletError
        assert (kind is lakelet.MachineError) == (info.exit_code is ExitCode.ENVIRONMENT), code


def test_errors_of_auto_loader_are_about_its_source_or_its_state() -> None:
    kinds = {code: kind_of(code) for code in CODES if code.startswith("CF_")}
    assert {code for code, kind in kinds.items() if kind is not lakelet.SourceError} == {"CF_STATE_DAMAGED"}
    assert kinds["CF_STATE_DAMAGED"] is lakelet.StateError
