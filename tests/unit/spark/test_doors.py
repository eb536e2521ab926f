"""One front door per method of pyspark: which steps stand behind it, and how a call passes through them. No Spark session."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lakelet.base.patching import patched_with
from lakelet.spark.patches.all_patches import DOORS, SETS
from lakelet.spark.patches.doors import Call, Door, Rest, around, before

# ------------------------------------------------------------------------------------------------------------ the table


def test_every_attribute_is_replaced_once_in_each_set() -> None:
    twice = {str(patch) for patches in SETS.values() for patch, times in Counter(map(str, patches)).items() if times > 1}
    assert twice == set()


def test_an_attribute_is_not_replaced_under_two_names_of_its_owner() -> None:
    owners = Counter((id(patch.owned_by()), patch.name) for patch in SETS["an update"])
    assert {name for name, times in owners.items() if times > 1} == set()


def steps_of(method: str) -> list[str]:
    (door,) = [door for door in DOORS if f"{door.owner}.{door.name}".endswith(method)]
    return [step.name for step in door.steps]


@pytest.mark.parametrize(
    ("method", "steps"),
    [
        (
            "SparkSession.sql",
            "note_top_level_call register_functions answer_listing name_parameters name_frames resolve_names convert_text_paths",
        ),
        ("functions.expr", "infer_json_schemas resolve_subqueries register_functions convert_text_paths"),
        ("DataFrame.selectExpr", "infer_json_schemas resolve_subqueries register_functions convert_text_paths"),
        ("DataFrame.filter", "resolve_subqueries register_functions convert_text_paths"),
        ("DataFrameReader.load", "note_call refuse_batch_load map_load_paths"),
        ("DataStreamWriter.start", "refuse_write note_call check_started_paths map_written_paths"),
        ("DataFrameWriter.saveAsTable", "refuse_write note_call save_by_name"),
        ("DataFrame.collect", "report_action note_call"),
    ],
)
def test_the_steps_of_a_method_are_a_list_in_its_order(method: str, steps: str) -> None:
    assert steps_of(method) == steps.split()


def test_a_step_has_a_reason_and_does_one_of_the_two_things() -> None:
    steps = {id(step): step for door in DOORS for step in door.steps}.values()
    assert [step.name for step in steps if not step.why or (step.before is None) == (step.around is None)] == []


# -------------------------------------------------------------------------------------------------------- the mechanism


class Reader:
    def read(self, path: str = "nothing", *more: str, mode: str = "quick", **options: str) -> str:
        return f"{path} {more} {mode} {options}"

    @classmethod
    def named(cls, name: str) -> str:
        return f"{cls.__name__}: {name}"


def parse(text: str) -> str:
    return f"parsed {text}"


@before("a test")
def loud(call: Call) -> Call:
    return call.changed(path=call.get("path", "").upper())


@around("a test")
def twice(call: Call, rest: Rest) -> Any:
    return [rest(call), rest(call.changed(mode="again"))]


@around("a test")
def answered(call: Call, rest: Rest) -> Any:
    return f"{call.method} of {call.update}"


def behind(name: str, *steps: Any) -> tuple[Any, ...]:
    owner = f"{__name__}.Reader" if hasattr(Reader, name) else __name__
    return (Door(owner, name, "1", steps).patch(),)


def test_steps_work_in_their_order_and_the_method_last() -> None:
    with patched_with(behind("read", loud, twice, loud)):
        assert Reader().read("a", "b", x="1") == ["A ('b',) quick {'x': '1'}", "A ('b',) again {'x': '1'}"]
    assert Reader().read("a") == "a () quick {}"


def test_the_method_gets_what_the_caller_gave_and_no_defaults() -> None:
    seen: list[Call] = []

    @before("a test")
    def kept(call: Call) -> Call:
        seen.append(call)
        return call

    reader = Reader()
    with patched_with(behind("read", kept)):
        assert [reader.read(), reader.read(mode="slow", path="p")] == ["nothing () quick {}", "p () slow {}"]
    assert [dict(call.arguments) for call in seen] == [{}, {"path": "p", "mode": "slow"}]
    assert {call.target for call in seen} == {reader}
    assert {call.caller.f_code.co_name for call in seen if call.caller} == {"test_the_method_gets_what_the_caller_gave_and_no_defaults"}


def test_a_step_may_answer_by_itself() -> None:
    with patched_with(behind("read", answered, loud), "the update"):
        assert Reader().read("a") == "read of the update"


def test_class_methods_and_functions_have_doors_too() -> None:
    @before("a test")
    def other(call: Call) -> Call:
        return call.changed(**{name: f"{value}!" for name, value in call.arguments.items()})

    with patched_with((*behind("named", other), *behind("parse", other))):
        assert (Reader.named("x"), Reader().named(name="y"), parse("z")) == ("Reader: x!", "Reader: y!", "parsed z!")


def test_arguments_that_do_not_fit_are_an_error_of_the_method() -> None:
    with patched_with(behind("named", answered)), pytest.raises(TypeError, match=r"named\(\) got an unexpected keyword argument 'nmae'"):
        Reader.named(nmae="x")  # type: ignore[call-arg]
