"""Environment: variables for the CLI and for the tools that it starts."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Allow
from quarterdeck.domain.errors import UnsupportedError
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.versions import environment_reaches_tools
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_variables_reach_the_tools(seat: Seat) -> None:
    see = play(ToolUse("Bash", {"command": "echo $FROM_START-$SET_LATER"}), "seen")
    start = {"FROM_START": "early"}
    async with seat.agent(decide=lambda _: Allow(), env=start) as agent:
        with anyio.fail_after(30):
            await agent.query(see).finish()
            assert "early-" in seat.model.turns[-1].last_text
            seat.found("Variables given at the start reach the tools")
            if not environment_reaches_tools(seat.version):
                with pytest.raises(UnsupportedError, match="environment"):
                    await agent.set_environment({"SET_LATER": "late"})
                seat.found("Variables set later reach the tools", "no")
                return
            await agent.set_environment({"SET_LATER": "late"})
            await agent.query(see).finish()
            assert "early-late" in seat.model.turns[-1].last_text
    seat.found("Variables set later reach the tools")
