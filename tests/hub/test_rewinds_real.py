"""Going back to before a prompt, and forks that have not seen it: with real CLIs, old and new."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from quarterdeck.domain.errors import Conflict, Forbidden, NotFound
from quarterdeck.hub.checkpoints import read_checkpoints
from quarterdeck.protocol.commands import ForkSession, RewindSession, SendPrompt
from quarterdeck.protocol.events import SessionCreated, SessionRewound
from quarterdeck.protocol.sessions import agent_name
from quarterdeck.protocol.views import Checkpoint, Rewound
from quarterdeck.testing import RealCli, ScriptedModel, reply
from quarterdeck.testing.script import Said, play
from support.hub_house import House, real_spec
from support.scenes import bash, write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def points(home: House, session: str) -> dict[str, Checkpoint]:
    found = await read_checkpoints(
        lambda after, limit: home.hub.events(session, after=after, limit=limit)
    )
    return {point.prompt: point for point in found}


async def send(home: House, session: str, prompt: str, *replies: Said) -> None:
    turns = (await home.hub.session(session)).turns
    content = msgspec.Raw(json.dumps(play(*replies)).encode())
    await home.hub.submit(SendPrompt(session=session, prompt=prompt, content=content, by="ada"))
    await home.until(session, lambda view: view.turns > turns)


async def go_back(home: House, command: RewindSession) -> Rewound:
    outcome = await home.hub.submit(command)
    return msgspec.json.decode(outcome.answer, type=Rewound)


FIRST = "6dd0a4f0-0000-4000-8000-000000000001"
SECOND = "6dd0a4f0-0000-4000-8000-000000000002"


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_files_and_conversation_go_back_as_far_as_the_version_can(
    version: str,
    tmp_path: Path,
    home: House,
    model: ScriptedModel,
    extra_clis: dict[str, RealCli],
) -> None:
    spec = real_spec(tmp_path, extra_clis[version], model, mode="acceptEdits")
    made, work = tmp_path / "work" / "made", tmp_path / "work"
    (work / "kept").write_text("before\n")
    session = await home.new(spec, json.dumps(play(reply("hello"))).encode())
    await home.until(session, lambda view: view.turns == 1)
    await send(home, session, FIRST, reply(write(made, "one\n")), reply("the first is done"))
    await send(home, session, SECOND, reply(write(work / "more", "x\n")), reply("so is the second"))
    known = await points(home, session)
    assert list(known)[1:] == [FIRST, SECOND]
    assert known[FIRST].before is not None
    assert known[SECOND].before not in {None, known[FIRST].before}
    assert "the first is done" in known[FIRST].text

    both = RewindSession(session=session, prompt=FIRST, files=True, conversation=True, by="ada")
    would = await go_back(home, both)
    assert (would.files, would.files_problem) == (True, "")
    assert {Path(path).name for path in would.changed} == {"made", "more"}
    assert made.exists()
    with pytest.raises(Forbidden):
        await home.hub.submit(msgspec.structs.replace(both, by=agent_name("other")))
    with pytest.raises(NotFound):
        await home.hub.submit(msgspec.structs.replace(both, prompt="none"))
    with pytest.raises(Conflict, match="choose"):
        await home.hub.submit(RewindSession(session=session, prompt=FIRST))

    # A fork that has not seen the second prompt.
    fork = await home.hub.submit(ForkSession(session=session, before=SECOND, name="b", by="ada"))
    await send(home, fork.session, "f1", reply("in the fork"))
    sent = str(model.turns[-1].messages)
    assert "the first is done" in sent
    assert "so is the second" not in sent

    if version == "2.1.37":
        assert "2.1.200 and later" in would.conversation_problem
        with pytest.raises(Conflict, match=r"2\.1\.200"):
            await home.hub.submit(msgspec.structs.replace(both, dry_run=False))
        only = msgspec.structs.replace(both, conversation=False, dry_run=False)
        assert (await go_back(home, only)).files
        assert not made.exists()
        return
    assert (would.conversation, would.conversation_problem) == (True, "")
    done = await go_back(home, msgspec.structs.replace(both, dry_run=False))
    assert (done.files, done.conversation) == (True, True)
    assert not made.exists()
    known = await points(home, session)
    assert [point.gone for point in known.values()] == [False, True, True]
    again = await go_back(home, both)
    assert "already" in again.conversation_problem
    await send(home, session, "again", reply(bash("true")), reply("another way"))
    assert (await points(home, session))["again"].before == known[FIRST].before
    assert "the first is done" not in str(model.turns[-1].messages)
    events = [stored.event for stored in await home.hub.events(session)]
    (rewound,) = [event for event in events if isinstance(event, SessionRewound)]
    assert (rewound.by, rewound.files, rewound.conversation) == ("ada", True, True)

    # Before the first prompt there is nothing to copy: the fork begins empty.
    first = next(iter(known))
    empty = await home.hub.submit(ForkSession(session=session, before=first, by="ada"))
    (created, *_) = [stored.event for stored in await home.hub.events(empty.session)]
    assert isinstance(created, SessionCreated)
    assert created.parent == session
    await home.until(empty.session, lambda view: view.run is not None)
