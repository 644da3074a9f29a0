import type { Session } from "../api/types";
import { isBusy } from "../state/sessions";
import { Confirm } from "../ui/Confirm";
import { plural } from "../ui/format";
import { Marked } from "../ui/Marked";

/** What ends with an agent's process, in words; a title of the agent's is beside them. */
export function whatStopEnds(session: Session): { words: string; title?: string }[] {
  const { holds } = session;
  const tool = holds.tools.at(-1);
  const others = holds.tools.length - 1;
  const tasks = holds.tasks.filter((task) => task.background).length;
  const ends: { words: string; title?: string }[] = [];
  if (isBusy(session)) ends.push({ words: "The running turn would end." });
  if (tool) {
    const which =
      others > 0 ? `${plural(others + 1, "call")} would end; the last is` : "This call would end:";
    ends.push({ words: which, title: tool.title || tool.tool });
  }
  if (tasks) ends.push({ words: `${plural(tasks, "background task")} would be ended.` });
  if (session.asks) ends.push({ words: `${plural(session.asks, "open question")} would be left.` });
  if (session.queued) {
    const waits = session.queued === 1 ? "waits" : "wait";
    ends.push({ words: `${plural(session.queued, "queued prompt")} ${waits} until you resume.` });
  }
  return ends;
}

/** Asks before an agent is stopped: its process ends, and what it is doing with it. */
export function StopDialog(props: { session: Session; onStop: () => void; onClose: () => void }) {
  return (
    <Confirm
      title="Stop the agent?"
      verb="Stop agent"
      keep="Keep it running"
      onConfirm={props.onStop}
      onClose={props.onClose}
    >
      <p>
        This ends the agent's process. The conversation is kept, and you can resume it. To end only
        the running turn, use Interrupt.
      </p>
      <ul>
        {whatStopEnds(props.session).map(({ words, title }) => (
          <li key={words}>
            {words}{" "}
            {title !== undefined && (
              <code>
                <Marked text={title} code />
              </code>
            )}
          </li>
        ))}
      </ul>
    </Confirm>
  );
}
