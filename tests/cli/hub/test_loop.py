"""`quarterdeck loop` with a hub: one family of sessions, that anybody may control."""

from __future__ import annotations

import json
import os
import signal

import anyio
import pytest
from msgspec.structs import replace

from quarterdeck.client import HubClient, HubRefused, calls
from quarterdeck.loop import HubWorker, LoopSpec, LoopStore, StopReason, Stops, new_loop, run_loop
from quarterdeck.loop.shapes import LoopShape, NewLoop
from quarterdeck.protocol.commands import AllowAnswer
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import SessionShape
from quarterdeck.service.local_hub import own_token
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ApiError, Gate, ToolUse, reply
from support.bounds import SECONDS
from support.repositories import make_repository
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

RUN = ("loop", "run", "--api-billing", "--until-phrase", "ALL DONE")
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})


def client_of(deck: ServedDeck) -> HubClient:
    return HubClient(deck.address, own_token(deck.data), timeout=SECONDS)


async def family_of(hub: HubClient, loop: str) -> list[SessionShape]:
    found = [shape async for shape in hub.sessions() if shape.spec.family == loop]
    return sorted(found, key=lambda shape: shape.created)


async def loop_of(deck: ServedDeck) -> dict[str, object]:
    listed = await deck("loop", "list", "--json")
    found = json.loads(listed.out.splitlines()[0])
    assert isinstance(found, dict)
    return found


async def until_loop(deck: ServedDeck, member: str, value: object) -> dict[str, object]:
    with anyio.fail_after(SECONDS):
        while (found := await loop_of(deck))[member] != value:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.1)
    return found


async def test_loops_of_one_hub(deck: ServedDeck, model: ScriptedModel) -> None:
    """One hub shows it all: its scenes follow each other."""
    await deck.serve()
    await a_loop_that_cannot_work_is_refused_by_the_hub(deck)
    await the_turns_of_a_loop_are_one_family_with_one_cost(deck, model)
    await what_a_loop_asks_waits_for_a_person_and_is_denied_after_a_time(deck, model)
    await a_loop_is_paused_resumed_and_stopped_by_another_command(deck, model)
    await who_stops_a_session_of_a_loop_stops_the_loop(deck, model)
    (deck.command.work / "made").unlink()
    await background_tasks_end_before_a_turn_of_a_hub_counts_and_its_check_is_in_the_sandbox(
        deck, model
    )
    await a_reviewer_and_a_usage_limit_work_in_a_hub(deck, model)


async def the_turns_of_a_loop_are_one_family_with_one_cost(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    model.enqueue("not yet", "now\n\nALL DONE")
    done = await deck(*RUN, "Mend it.", code=10)
    assert "Stopped after 2 turns" in done.out
    loop = await loop_of(deck)
    assert (loop["state"], loop["reason"], loop["done"]) == ("stopped", "phrase", True)
    async with client_of(deck) as hub:
        with anyio.fail_after(SECONDS):
            # A process for each turn; the last one ends a moment after its loop.
            while True:
                family = await family_of(hub, str(loop["loop"]))
                if all(shape.run is None for shape in family):
                    break
                await anyio.sleep(0.05)
    assert [shape.name for shape in family] == ["Mend it.: turn 1", "Mend it.: turn 2"]
    assert {shape.by for shape in family} == {"loop"}
    assert loop["cost_usd"] == pytest.approx(sum(shape.cost_usd for shape in family))
    shown = await deck("loop", "show", str(loop["loop"])[:10])
    assert "- Stopped: phrase (exit code 10)." in shown.out


async def what_a_loop_asks_waits_for_a_person_and_is_denied_after_a_time(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    model.enqueue(TOUCH, "made", TOUCH, "not made\n\nALL DONE")
    started = await deck(*RUN, "--detach", "--ask-timeout", "3", "Mend it.")
    loop = started.out.strip()
    async with client_of(deck) as hub:
        with anyio.fail_after(SECONDS):
            while not (asks := await hub.asks()):  # noqa: ASYNC110 - another process
                await anyio.sleep(0.05)
            await hub.session(asks[0].session).answer(asks[0], AllowAnswer())
    found = await until_loop(deck, "state", "stopped")
    assert found["reason"] == "phrase"
    assert (deck.command.work / "made").exists()
    report = json.loads((await deck("loop", "show", loop, "--json")).out)
    denied = [turn["outcome"].get("denied", []) for turn in report["history"]]
    assert denied[0] == []
    assert len(denied[1]) == 1
    assert "touch made" in denied[1][0]


async def a_loop_is_paused_resumed_and_stopped_by_another_command(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    model.enqueue(reply("one", Gate("first")), reply("two ", Gate("second")))
    before = len(model.turns)
    loop = (await deck(*RUN, "--detach", "Mend it.")).out.strip()
    await model.wait_at_gate("first", timeout=SECONDS)
    await deck("loop", "pause", loop)
    model.release("first")
    await until_loop(deck, "state", "paused")
    assert len(model.turns) == before + 1
    await deck("loop", "resume", loop)
    await model.wait_at_gate("second", timeout=SECONDS)
    await deck("loop", "stop", loop)
    found = await until_loop(deck, "state", "stopped")
    assert found["reason"] == "person"
    await deck("loop", "stop", loop, code=1)


async def who_stops_a_session_of_a_loop_stops_the_loop(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    model.enqueue(reply("one ", Gate("fourth")))
    before = len(model.turns)
    loop = (await deck(*RUN, "--detach", "Mend it.")).out.strip()
    await model.wait_at_gate("fourth", timeout=SECONDS)
    async with client_of(deck) as hub:
        (session,) = await family_of(hub, loop)
        await hub.session(session.session).stop()
    found = await until_loop(deck, "state", "stopped")
    assert found["reason"] == "person"
    assert len(model.turns) == before + 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_loop_goes_on_after_the_hub_has_ended(
    deck: ServedDeck, model: ScriptedModel, number: signal.Signals
) -> None:
    model.enqueue("one", reply("two ", Gate(), "\n\nALL DONE"))
    await deck.serve()
    loop = (await deck(*RUN, "--detach", "Mend it.")).out.strip()
    await model.wait_at_gate(timeout=SECONDS)
    assert deck.hub is not None
    os.kill(deck.hub.pid, number)
    with anyio.fail_after(SECONDS):
        await deck.hub.wait()
    await deck.serve()
    model.release()
    found = await until_loop(deck, "state", "stopped")
    assert (found["reason"], found["turns"]) == ("phrase", 2)
    assert len(model.turns) == 2  # nobody was prompted twice
    async with client_of(deck) as hub:
        assert len(await family_of(hub, loop)) == 2


async def test_a_program_runs_a_loop_in_a_worktree_by_the_public_client(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    repository = make_repository(deck.command.home / "repository")
    model.enqueue(TOUCH, "made", when="Make it")
    await deck.serve()
    spec = LoopSpec(
        task="Make it.",
        directory=str(repository),
        worktree="made-by-loop",
        commit=True,
        fresh=False,
        stops=Stops(command="test -e made", turns=2),
    )
    template = SessionSpec(directory=str(repository), api_billing=True, skip_permissions=True)
    store = LoopStore(deck.command.home / "own")
    async with client_of(deck) as hub:
        with anyio.fail_after(SECONDS):
            state = await run_loop(new_loop(spec, host="hub"), HubWorker(hub, template), store)
        assert state.stopped is not None
        assert state.stopped.reason is StopReason.COMMAND
        assert state.directory != str(repository)
        assert state.turns[0].commit is not None
        assert not (repository / "made").exists()
        (session,) = await family_of(hub, state.id)
        await deck.until_state(session.session, "ended")  # with the loop


async def a_reviewer_and_a_usage_limit_work_in_a_hub(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    verdicts = [
        f"So it is.\n\n```json\n{json.dumps({'agree': agree, 'reason': 'a reason'})}\n```"
        for agree in (False, True)
    ]
    model.enqueue(*verdicts, when="Review the work")
    model.enqueue("ALL DONE", "again\n\nALL DONE", when="Mend it")
    model.enqueue(*[reply(ApiError(429, "slow down"))] * 20, when="Limit it")
    done = await deck(*RUN, "--review", "--json", "Mend it.", code=10)
    history = json.loads(done.out)["history"]
    assert [turn["verdict"]["agree"] for turn in history] == [False, True]
    few = ("--limit-minutes", "0", "--env", "CLAUDE_CODE_MAX_RETRIES=1")
    done = await deck(*RUN, *few, "Limit it.", code=24)
    assert "The account's limit did not end" in done.out
    model.enqueue(reply("slow ", Gate()), when="Slow it")
    done = await deck(*RUN, "--minutes", "0.1", "Slow it.", code=21)
    assert "It has worked for 6 s." in done.out
    async with client_of(deck) as hub:
        async for shape in hub.sessions():
            await deck.until_state(shape.session, "ended")


async def a_loop_that_cannot_work_is_refused_by_the_hub(deck: ServedDeck) -> None:
    work = str(deck.command.work)
    spec = LoopSpec(task="Mend it.", directory=work)
    session = SessionSpec(directory=work)

    async def refused(new: NewLoop) -> str:
        async with client_of(deck) as hub:
            with pytest.raises(HubRefused) as caught:
                await hub.call(calls.send("POST", "/api/loops", LoopShape, new))
            return str(caught.value)

    gone = NewLoop(spec=replace(spec, directory="/not/there"), session=session)
    assert "is not a folder" in await refused(gone)
    far = NewLoop(spec=spec, session=replace(session, machine="tower"))
    assert "a loop works on the hub's machine" in await refused(far)
    assert "not an id" in await refused(NewLoop(spec=spec, session=session, loop="." * 26))
    done = await deck("loop", "show", "0" * 26, code=1)
    assert "there is no loop" in done.err
    done = await deck("loop", "stop", "nothing-like-it", code=1)
    assert "there is no loop" in done.err
    assert not (deck.data / "loops.token").exists()  # a hub without loops has no token for them


async def background_tasks_end_before_a_turn_of_a_hub_counts_and_its_check_is_in_the_sandbox(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    slow = {"command": "sleep 3; echo late > made", "run_in_background": True}
    model.enqueue(ToolUse("Bash", {**slow, "description": "work"}), "it runs", "it has ended")
    check = f"cat made && ! ls {deck.data}/hub.json"
    arguments = ("--until-command", check, "--turns", "1", "--dangerously-skip-permissions")
    done = await deck("loop", "run", "--api-billing", *arguments, "--json", "Mend it.", code=11)
    (turn,) = json.loads(done.out)["history"]
    assert turn["outcome"]["text"] == "it runs\n\nit has ended"
    assert turn["check"]["sandbox"] == "protect"
