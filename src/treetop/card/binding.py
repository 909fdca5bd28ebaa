"""What binds a card to its folder: plan.toml ends with the SHA-256 of all that the card states but its files.

Most of a card is computed again from the plan and the tables when it is checked. What no computation gives, such as
the day, is bound by this line: whoever changes it in the card alone is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

_LINE = re.compile(r"^# card_statement_sha256 = \"([0-9a-f]{64})\"\n", re.MULTILINE)


def statement_sha256(card: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a card without its list of files, which names that of plan.toml itself."""
    stated = {name: value for name, value in card.items() if name != "files"}
    return sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def bind(plan_toml: str, card: Mapping[str, Any]) -> str:
    """Return plan.toml with the line of this card, and of no other, at its end."""
    return f'{_LINE.sub("", plan_toml).rstrip()}\n\n# card_statement_sha256 = "{statement_sha256(card)}"\n'


def bound(plan_toml: str) -> list[str]:
    """Return the hashes of the cards that a plan.toml says it belongs to: one, since the second format of cards."""
    return _LINE.findall(plan_toml)
