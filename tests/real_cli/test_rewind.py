"""Rewinding: files go back to what they were before a prompt."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Allow
from quarterdeck.domain.errors import RequestRefused
from quarterdeck.testing import ToolUse, play
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_files_are_rewound_to_a_prompt(seat: Seat) -> None:
    kept, made = seat.cwd / "kept", seat.cwd / "made"
    kept.write_text("old\n")
    edit = {"file_path": str(kept), "old_string": "old", "new_string": "new"}
    script = play(
        ToolUse("Read", {"file_path": str(kept)}),
        ToolUse("Edit", {**edit}),
        ToolUse("Write", {"file_path": str(made), "content": "more\n"}),
        ToolUse("Bash", {"command": f"echo shell >> {kept}"}),
        "changed",
    )
    async with seat.agent(decide=lambda _: Allow(), file_checkpointing=True) as agent:
        with anyio.fail_after(30):
            await agent.query("nothing yet").finish()
            changing = agent.query(script)
            await changing.finish()
            assert kept.read_text() == "new\nshell\n"
            assert made.exists()

            would = await agent.rewind_files(changing.uuid, dry_run=True)
            assert would.can_rewind
            assert set(would.files_changed) == {str(kept), str(made)}
            assert made.exists()

            assert (await agent.rewind_files(changing.uuid)).can_rewind
            assert kept.read_text() == "old\n"
            assert not made.exists()
            with pytest.raises(RequestRefused, match="No file checkpoint found"):
                await agent.rewind_files("11111111-2222-4333-8444-555555555555")
            # The conversation is not rewound.
            await agent.query("and now?").finish()
    assert "changed" in seat.model.turns[-1].body.decode()
    seat.found("Rewind files")

    async with seat.agent() as agent:
        with anyio.fail_after(30):
            query = agent.query("hello")
            await query.finish()
            would = await agent.rewind_files(query.uuid, dry_run=True)
            assert not would.can_rewind
            assert would.error == "File rewinding is not enabled."
            with pytest.raises(RequestRefused, match="not enabled"):
                await agent.rewind_files(query.uuid)
    seat.found("Rewind files without checkpoints", "a clear error")
