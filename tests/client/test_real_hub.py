"""The public client against `quarterdeck serve`, with a fake CLI; and the examples of its guide."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from quarterdeck.client import HubClient
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import AllowAnswer
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.service.local_hub import own_token
from quarterdeck.testing import fake
from quarterdeck.wire.messages import Assistant
from support.bounds import SECONDS
from support.pages import page
from support.processes import Processes
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]

TURN = (
    fake.Expect("user"),
    fake.say(
        fake.assistant(fake.tool_use("Bash", {"command": "make"})),
        fake.can_use_tool("Bash", {"command": "make"}),
    ),
    fake.Expect("control_response"),
    fake.say(fake.assistant("All tests pass."), fake.result("All tests pass.")),
)


def client_of(deck: ServedDeck) -> HubClient:
    """The client of this machine's user."""
    return HubClient(deck.address, own_token(deck.data), timeout=SECONDS)


def spec_of(deck: ServedDeck) -> SessionSpec:
    """A session in the folder of the test."""
    return SessionSpec(directory=str(deck.command.work), api_billing=True)


async def test_a_prompt_is_worked_on_and_its_question_is_answered(deck: ServedDeck) -> None:
    deck.command.play_fake(fake.Initialize(), *TURN, fake.Serve())
    await deck.serve()
    with anyio.fail_after(SECONDS):
        async with client_of(deck) as hub, await hub.create(spec_of(deck)) as session:
            await session.wait_for(lambda view: view.state is SessionState.IDLE)
            turn = await session.prompt("Run the tests.")
            await session.wait_for(lambda view: view.asks == 1)
            (ask,) = await session.asks()
            await session.answer(ask, AllowAnswer())
            said = [message.text async for message in turn if isinstance(message, Assistant)]
            assert said[-1] == "All tests pass."
            assert not (await turn.result()).failed
            await session.wait_for(lambda view: view.state is SessionState.IDLE)
            again = await session.prompt("Run the tests.", id=turn.prompt)
            assert (await again.result()).prompts == (turn.prompt,)
            await session.stop()
            await session.wait_for(lambda view: view.run is None)
            await session.delete()
    await deck("stop")


async def test_a_follower_survives_a_restart_of_the_hub(deck: ServedDeck) -> None:
    deck.command.play_fake(fake.Initialize(), *TURN, fake.Serve())
    await deck.serve()
    with anyio.fail_after(SECONDS):
        async with client_of(deck) as hub, await hub.create(spec_of(deck)) as session:
            await session.wait_for(lambda view: view.state is SessionState.IDLE)
            head = session.view.head
            await deck("stop", "--hub-only")
            assert await deck.ends() == 0
            await deck.serve()
            turn = await session.prompt("Run the tests.")
            await session.wait_for(lambda view: view.asks == 1)
            (ask,) = await session.asks()
            await session.answer(ask, AllowAnswer())
            await turn.result()
            numbers: list[int] = []
            async for shape in session.events(head):
                numbers.append(shape.seq)
                if isinstance(shape.event, ev.TurnEnded):
                    break
            assert numbers == list(range(head + 1, numbers[-1] + 1))
    await deck("stop")


PLAIN = (
    fake.Expect("user"),
    fake.say(
        fake.assistant("All tests pass."),
        fake.result("All tests pass.", structured_output={"passed": 3, "failed": 0}),
    ),
)


async def test_the_examples_of_the_guide_run(
    deck: ServedDeck, tmp_path: Path, processes: Processes
) -> None:
    asking, plain = (made_cli(deck, *turn) for turn in (TURN, PLAIN))
    cli = tmp_path / "claude"
    deck.command.env["QUARTERDECK_CLAUDE"] = str(cli)
    use_cli(cli, plain)
    await deck.serve()
    examples = page("docs/how-to/drive-the-hub-from-python.md").blocks("python")
    printed: list[str] = []
    # The second one again: it is idempotent, as the guide says.
    for number in (0, 1, 1, 2, 3, 4):
        use_cli(cli, asking if number == 1 else plain)
        program = tmp_path / f"example{number}.py"
        program.write_text(examples[number].code)
        printed.append(await output_of(program, deck, processes))
    first, second, third, fourth, fifth, sixth = printed
    assert first == "All tests pass.\n"
    assert second == third
    assert second.splitlines()[0] == "All tests pass."
    assert second.splitlines()[-1].endswith(" USD")
    assert fourth == "3 passed\n"
    assert fifth.endswith("has finished: All tests pass.\n")
    assert sixth.startswith("All tests pass. ")
    (answered,) = [
        shape.event
        for shape in await anyio.to_thread.run_sync(lambda: list(deck.client.audit("nightly")))
        if isinstance(shape.event, ev.AskAnswered)
    ]
    assert b"Not at night." in bytes(answered.answer)
    assert len(examples) == 5
    await deck("stop")


def made_cli(deck: ServedDeck, *turn: fake.Step) -> Path:
    """A fake CLI that plays one turn."""
    deck.command.play_fake(fake.Initialize(), *turn, fake.Serve())
    return Path(deck.command.env["QUARTERDECK_CLAUDE"])


def use_cli(place: Path, cli: Path) -> None:
    """Have the next session start this CLI."""
    place.unlink(missing_ok=True)
    place.symlink_to(cli)


async def output_of(program: Path, deck: ServedDeck, processes: Processes) -> str:
    """What a program prints that is run by this machine's user."""
    env = {"PATH": deck.command.env["PATH"], "QUARTERDECK_HOME": str(deck.data)}
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(
            [sys.executable, str(program)], env=env, cwd=deck.command.work, stderr=None
        ) as running:
            processes.started(running.pid)
            assert running.stdout is not None
            said = b"".join([part async for part in running.stdout]).decode()
            assert await running.wait() == 0
    return said
