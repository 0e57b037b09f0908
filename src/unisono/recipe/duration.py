"""How long something lasts: in epochs, optimizer steps or images, turned into steps once."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

Unit = Literal["epochs", "steps", "images"]
_FORM = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(epoch|step|image)s?\s*$")


class DurationValue(BaseModel):
    """A count and its unit; `steps()` is the only conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    count: float = Field(ge=0)
    unit: Unit

    def steps(self, steps_per_epoch: int, global_batch_size: int) -> int:
        """Whole optimizer steps, rounded up, so that a duration above 0 is at least one step."""
        exact = Fraction(str(self.count))  # 1.1 epochs of 10 steps are 11 steps; in binary floats they would be 12
        if self.unit == "epochs":
            exact *= steps_per_epoch
        elif self.unit == "images":
            exact /= global_batch_size
        return math.ceil(exact)

    def __str__(self) -> str:
        """What `parse_duration` reads back as the same value."""
        count = str(int(self.count)) if self.count.is_integer() else format(Decimal(str(self.count)), "f")
        return f"{count} {self.unit}"


def parse_duration(value: Any) -> Any:
    """Read "200 epochs", "20 steps" or "1000000 images"; a table {count, unit} passes through.

    Raises:
        ValueError: the text has another form, or is a bare number (its unit would be a guess).
    """
    if isinstance(value, str):
        match = _FORM.match(value)
        if match is None:
            raise ValueError(
                f"{value!r} is not a duration; write a number and a unit, such as '200 epochs' or '20 steps'"
            )
        return DurationValue(count=float(match[1]), unit=f"{match[2]}s")
    if isinstance(value, (int, float)):
        raise ValueError(f"{value} has no unit; write '{value:g} epochs' or '{value:g} steps'")
    return value


Duration = Annotated[DurationValue, BeforeValidator(parse_duration), PlainSerializer(str, return_type=str)]
