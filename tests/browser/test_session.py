"""A session as a person follows it: what was said and done, as it happens and afterwards."""

from __future__ import annotations

import re

import anyio
import pytest
from playwright.async_api import expect

from quarterdeck.testing import ApiError, Text, Thinking, ToolUse, fake, play, reply
from support.api_client import ApiSeat
from support.bounds import SECONDS
from support.browser import Screen
from support.imports import leave
from support.pictures import png
from support.runners import program
from support.scenes import bash, read

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PROSE = """# What I found

A *short* list, and `code` in a line:

- one
- two

| File | Lines |
|---|---|
| a.py | 12 |

```python
def greet(name: str) -> str:
    return f"hello {name}"
```
"""
HOSTILE = """<script>window.hurt = 1</script> <img src=x onerror="window.hurt = 2">

[run](javascript:window.hurt=3) ![pixel](https://evil.example/pixel.png)
<iframe src="https://evil.example/"></iframe> <style>body { display: none }</style>
<svg onload="window.hurt=4"></svg> [data](data:text/html,<script>window.hurt=5</script>)

```html
<script>window.hurt = 6</script>
```

[out](https://evil.example/page) that was all
"""


IDS: fake.Line = {"session_id": "$session_id", "uuid": "$uuid"}
SHIFTS = """async () => {
  // The frame that is being drawn may have moved something already.
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries())
      if (!one.hadRecentInput && document.querySelector(".markdown-prose[data-live]"))
        shifts.push([one.value, one.sources.map(({node}) =>
          (node?.nodeType === 3 ? node.parentElement : node)?.outerHTML?.slice(0, 200) ?? "")]);
  }).observe({ type: "layout-shift" });
}"""
"""What moves while text streams, though nobody has touched anything: in the story, in the head of
the session, or elsewhere. The head moves once when the CLI begins its first turn, because only then
it tells its model: on a busy machine that is in the same frame as the first text."""
SCROLL = """async (log) => {
  log.scrollTo(0, 560);
  await new Promise(requestAnimationFrame);
  const top = (row) => row.getBoundingClientRect().top;
  const every = [...log.querySelectorAll(".timeline-row")];
  const rows = every.filter((row) => top(row) > 150);
  const row = rows.sort((a, b) => top(a) - top(b)).find((row) => row.innerText.includes("Answer"));
  return [row.innerText.split("\\n")[0], top(row)];
}"""


async def test_a_story_has_text_thinking_calls_diffs_pictures_and_its_end(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "colours.txt").write_text("\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[0m\n")
    (seat.work / "app.py").write_text("def greet():\n    return 'helo'\n")
    (seat.work / "dot.png").write_bytes(png(60, level=0))
    numbers = "".join(f"line {number} of the whole output\n" for number in range(40_000))
    (seat.work / "numbers.txt").write_text(numbers)
    edit: dict[str, object] = {
        "file_path": str(seat.work / "app.py"),
        "old_string": "helo",
        "new_string": "hello",
    }
    session = await seat.create(
        reply(Thinking("I think about it"), PROSE, bash("cat colours.txt")),
        reply(read(seat.work / "app.py"), read(seat.work / "dot.png")),
        ToolUse("Edit", edit),
        bash("cat missing.txt"),
        bash("cat numbers.txt"),
        "all done",
    )
    # The card reads the file of an open question: it is answered only then.
    async with screen.page.expect_response(re.compile("/api/asks/.*/file$")):
        await screen.open(session)
    await seat.answer(await seat.ask(session), "allow")
    await screen.hears("all done")
    story = screen.story
    await expect(story.locator(".entry-turn").last).to_contain_text("done")
    await screen.shot("session-end")

    diff = story.locator(".code-diff").first
    await expect(diff).to_contain_text("return 'hello'")
    await expect(diff).to_contain_text("line 1")
    missing = story.locator(".tool-row", has_text="cat missing.txt")
    await expect(missing).to_contain_text("failed")
    await missing.get_by_role("button").first.click()
    await expect(missing.locator(".code-terminal[data-failed]")).to_contain_text("No such file")

    # What the CLI stored in a file is read from there, on the machine where it is.
    long = story.locator(".tool-row", has_text="cat numbers.txt")
    await long.get_by_role("button").first.click()
    await expect(long).to_contain_text("line 3 of the whole output")
    await expect(long).not_to_contain_text("line 20000 of")
    await long.get_by_role("button", name="Show whole output").click()
    await expect(long).to_contain_text("line 20000 of the whole output")
    await long.get_by_role("button", name=re.compile(r"Show more \(1024 of \d+ KB\)")).click()
    await expect(long).to_contain_text("line 39999 of the whole output")
    await expect(long.get_by_role("button", name="Show more")).to_have_count(0)
    await screen.shot("session-whole-output")

    await story.evaluate("log => log.scrollTo(0, 0)")
    await expect(story.get_by_role("heading", name="What I found")).to_be_visible()
    await expect(story.locator(".markdown-prose .code-block .code-hue").first).to_be_visible()
    thinking = story.locator(".entry-thinking")
    await expect(thinking).not_to_contain_text("I think about it")
    await thinking.locator("summary").click()
    await expect(thinking).to_contain_text("I think about it")
    colours = story.locator(".tool-row", has_text="cat colours.txt")
    await colours.get_by_role("button").first.click()
    await expect(colours.locator("[data-fg=ansi-red]")).to_have_text("red")
    picture = story.locator(".tool-row", has_text="dot.png")
    await picture.get_by_role("button").first.click()
    # It is read by its own path, once: no event has its data.
    await expect(picture.get_by_role("img")).to_have_attribute("src", re.compile("^blob:"))
    assert (
        await picture.get_by_role("img").evaluate(
            "img => img.decode().then(() => img.naturalWidth)"
        )
        == 60
    )
    await screen.shot("session-begin")
    await screen.page.emulate_media(reduced_motion="reduce")
    await screen.check_access()
    await screen.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await screen.check_access()
    await screen.shot("session-dark")
    await seat.stop(session)


async def test_text_streams_where_it_stays_and_the_end_is_followed_unless_one_reads_above(
    seat: ApiSeat, lone_screen: Screen
) -> None:
    screen = lone_screen
    text = "One line of many that are said, and *long enough* for `two` of them. " * 3
    lines = Text(f"{text}\n\n- a\n- list\n\n", times=60, delay=0.04)
    session = await seat.create(lines)
    await screen.open(session)
    live = screen.story.locator(".markdown-prose[data-live]")
    await expect(live).to_contain_text("One line of many")
    await expect(screen.page.get_by_role("button", name="Interrupt")).to_be_visible()
    await expect(screen.page.locator("[data-fact=model]")).to_have_text("Default (recommended)")
    await expect(screen.page.locator("[data-fact=effort]")).to_have_text("Effort: automatic")
    await screen.page.evaluate(SHIFTS)
    await screen.shot("session-streaming")
    box = await live.element_handle()
    to_end = screen.page.get_by_role("button", name="Jump to latest")
    far = "log => log.scrollHeight - log.scrollTop - log.clientHeight"
    await screen.page.wait_for_function(
        "() => document.querySelectorAll('.markdown-prose p').length > 15"
    )
    assert await screen.story.evaluate(far) < 80

    await screen.story.hover()
    await screen.page.mouse.wheel(0, -400)
    await expect(to_end).to_be_visible()
    place = await screen.story.evaluate("log => log.scrollTop")
    await screen.page.wait_for_function(
        "() => document.querySelectorAll('.markdown-prose p').length > 30"
    )
    assert await screen.story.evaluate("log => log.scrollTop") == place
    await to_end.click()
    await expect(to_end).to_have_count(0)
    await expect(screen.story.locator(".entry-turn")).to_be_visible()
    await expect(live).to_have_count(0)
    # The row that streamed is the row that stays: nothing was drawn anew, nothing has moved.
    assert await box.evaluate("row => row.isConnected")
    assert await screen.story.evaluate(far) < 80
    assert await screen.page.evaluate("shifts") == []
    await seat.stop(session)


async def test_subagents_tasks_attempts_and_compaction_have_their_places(
    seat: ApiSeat, screen: Screen
) -> None:
    inner = play(bash("cat inner.txt"), "the subagent is done")
    (seat.work / "inner.txt").write_text("from within\n")
    session = await seat.create(
        ToolUse(
            "Task",
            {
                "description": "look inside",
                "prompt": inner,
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        ),
        ToolUse(
            "Bash",
            {"command": "sleep 1; touch slept", "description": "nap", "run_in_background": True},
        ),
        "the rest goes on",
    )
    await screen.open(session)
    await screen.card.get_by_role("button", name="Allow once").click()
    await screen.hears("the rest goes on")
    agent = screen.story.locator(".tool-row", has_text="look inside").first
    await agent.get_by_text("Subagent:").click()
    await expect(agent.locator(".tool-thread")).to_contain_text("cat inner.txt")
    nap = screen.story.locator(".tool-row", has_text="sleep 1")
    await expect(nap.locator(".tool-task-line[data-over]")).to_contain_text("completed")
    await screen.shot("session-subagent")
    await screen.page.get_by_role("button", name="Panels").click()
    await screen.page.get_by_role("tab", name="Tasks").click()
    await expect(screen.page.get_by_role("tabpanel")).to_contain_text("nap")
    await screen.shot("panel-tasks")
    await screen.page.get_by_role("button", name="Close panel").click()

    await screen.say(play(reply(ApiError(529, times=2), "there again")))
    note = screen.story.locator("[data-code]", has_text="The model's API failed")
    await expect(note).to_contain_text("attempt")
    await screen.shot("session-retry")
    await screen.hears("there again")
    await screen.say("/compact")
    await expect(screen.story).to_contain_text("conversation compacted")
    await screen.shot("session-compacted")
    await seat.stop(session)


async def test_searches_in_the_web_and_tasks_tell_what_they_found_and_how_far_they_are(
    seat: ApiSeat, screen: Screen
) -> None:
    found = [
        {"title": "The first page", "url": "https://one.example/a"},
        {"title": "Not a page", "url": "javascript:alert(1)"},
    ]
    structured = {"query": "walrus", "results": [{"tool_use_id": "s", "content": found}]}
    task: fake.Line = {"type": "system", "task_id": "t1", "tool_use_id": "toolu_task"} | IDS
    usage = {"tool_uses": 3, "total_tokens": 1200}
    about = {"description": "count the walruses", "run_in_background": True}
    progress = {"subtype": "task_progress", "description": "reading page 2", "usage": usage}
    over = {"subtype": "task_notification", "status": "completed", "summary": "there are 7"}
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant(fake.tool_use("WebSearch", {"query": "walrus"}))),
        fake.say(fake.tool_result("Links: []") | {"tool_use_result": structured}),
        fake.say(fake.assistant(fake.tool_use("Task", about, "toolu_task"))),
        fake.say(task | {"subtype": "task_started", "description": "count the walruses"}),
        fake.say(task | progress),
        fake.say(fake.result()),
        fake.Expect("user", timeout=120.0),
        fake.say(task | over),
        fake.say(fake.result()),
        fake.Serve(),
    ]
    spec = {"directory": str(seat.work), "claude": program(seat.home / "walrus", script)}
    session = str((await seat.ada.post("sessions", spec=spec, prompt="look"))["session"])
    await screen.open(session)
    search = screen.story.locator(".tool-row", has_text="Web search")
    await expect(search).to_contain_text("walrus")
    await search.get_by_role("button").first.click()
    await expect(search.get_by_role("link")).to_have_count(1)
    await expect(search.get_by_role("link", name="The first page")).to_have_attribute(
        "rel", "noopener noreferrer nofollow"
    )
    line = screen.story.locator(".tool-row", has_text="count the walruses").locator(
        ".tool-task-line"
    )
    await expect(line).to_contain_text("running in the background")
    await expect(line).to_contain_text("3 calls · 1.2k tokens · reading page 2")
    await screen.shot("session-search-and-task")
    await screen.check_access()
    await screen.page.get_by_role("button", name="Panels").click()
    await screen.page.get_by_role("tab", name="Tasks").click()
    panel = screen.page.get_by_role("tabpanel")
    await expect(panel).to_contain_text("reading page 2")
    await expect(panel.get_by_role("button", name="Stop")).to_be_visible()
    await seat.ada.post(f"sessions/{session}/prompts", content="go on")
    await expect(line).to_contain_text("completed")
    await expect(panel).to_contain_text("there are 7")


async def test_hostile_text_does_nothing_and_asks_nobody(seat: ApiSeat, screen: Screen) -> None:
    asked: list[str] = []
    screen.page.on("request", lambda request: asked.append(request.url))
    session = await seat.create(reply(HOSTILE, bash(f"cat '{'<img src=x onerror=1>'}'")), HOSTILE)
    await screen.open(session)
    await expect(screen.story.locator(".markdown-prose").last).to_contain_text("that was all")
    await expect(screen.story.locator(".entry-turn")).to_be_visible()
    await screen.shot("session-hostile")
    assert await screen.page.evaluate("window.hurt") is None
    found = screen.story.locator(".markdown-prose").locator(
        "script, iframe, style, svg, img, [onerror]"
    )
    assert await found.count() == 0
    link = screen.story.get_by_role("link", name="out").last
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    own = (seat.deck.address, "data:", "blob:")
    assert not [url for url in asked if not url.startswith(own)]
    await seat.stop(session)


async def test_a_long_session_opens_at_its_end_and_what_came_before_is_loaded_as_one_scrolls(
    seat: ApiSeat, screen: Screen
) -> None:
    leave(seat.home, "/home/ann/long", turns=600)
    await seat.ada.post("import")
    sessions = (await seat.ada.get("sessions"))["sessions"]
    (taken,) = [one for one in sessions if one["name"] == "Prompt 0 in /home/ann/long"]
    await screen.open(taken["session"])
    story = screen.story
    await expect(story.get_by_text("Answer 599.")).to_be_visible()
    await screen.shot("session-long")
    drawn = await story.locator(".timeline-rows > .timeline-row").count()
    assert drawn < 60
    small = await story.evaluate("log => log.scrollHeight")
    seen, before = await story.evaluate(SCROLL)
    await screen.page.wait_for_function(
        "small => document.querySelector('[role=log]').scrollHeight > small * 1.5", arg=small
    )
    row = story.locator(".timeline-rows > .timeline-row").filter(has_text=seen)
    after = await row.evaluate("row => row.getBoundingClientRect().top")
    assert abs(after - before) < 40
    first = story.get_by_text("Prompt 0 in /home/ann/long")
    with anyio.fail_after(SECONDS):
        while not await first.is_visible():  # each look at the top loads what came before
            await story.evaluate("log => log.scrollTo(0, 0)")
            await screen.page.wait_for_timeout(20)
    assert await story.locator(".timeline-rows > .timeline-row").count() < 60
