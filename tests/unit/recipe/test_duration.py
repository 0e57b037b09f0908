"""Durations: three units, one conversion, a text that reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.recipe.duration import DurationValue, parse_duration


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("2 epochs", 20),
        ("1 epoch", 10),
        ("0.25 epochs", 3),
        ("7 steps", 7),
        ("0 steps", 0),
        ("640 images", 10),
        ("641 images", 11),
        # In binary floats 1.1 x 10 is a little above 11.
        ("1.1 epochs", 11),
    ],
)
def test_a_duration_is_whole_steps_rounded_up(text: str, steps: int) -> None:
    assert parse_duration(text).steps(steps_per_epoch=10, global_batch_size=64) == steps


@pytest.mark.parametrize("text", ["9", "epochs", "3 weeks", "-1 epochs", "1e3 steps", ""])
def test_a_duration_without_number_or_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("number", [9, 2.5])
def test_a_bare_number_is_refused_because_its_unit_would_be_a_guess(number: float) -> None:
    with pytest.raises(ValueError, match="has no unit"):
        parse_duration(number)


@given(count=st.floats(min_value=0, max_value=1e15), unit=st.sampled_from(["epochs", "steps", "images"]))
def test_the_text_of_a_duration_reads_back_as_the_same_value(count: float, unit: str) -> None:
    value = DurationValue.model_validate({"count": count, "unit": unit})
    assert parse_duration(str(value)) == value
