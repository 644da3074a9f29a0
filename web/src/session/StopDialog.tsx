import type { Session } from "../api/types";
import { isBusy } from "../state/sessions";
import { text as catalogue } from "../text";
import { Confirm } from "../ui/Confirm";
import { Marked } from "../ui/Marked";

/** What ends with an agent's process, in words; a title of the agent's is beside them. */
export function whatStopEnds(session: Session): { words: string; title?: string }[] {
  const { holds } = session;
  const tool = holds.tools.at(-1);
  const others = holds.tools.length - 1;
  const tasks = holds.tasks.filter((task) => task.background).length;
  const ends: { words: string; title?: string }[] = [];
  if (isBusy(session)) ends.push({ words: catalogue.parts.stop.turn });
  if (tool) {
    const which = others > 0 ? catalogue.parts.stop.calls(others + 1) : catalogue.parts.stop.call;
    ends.push({ words: which, title: tool.title || tool.tool });
  }
  if (tasks) ends.push({ words: catalogue.parts.stop.tasks(tasks) });
  if (session.asks) ends.push({ words: catalogue.parts.stop.asks(session.asks) });
  if (session.queued) {
    ends.push({ words: catalogue.parts.stop.queued(session.queued) });
  }
  return ends;
}

/** Asks before an agent is stopped: its process ends, and what it is doing with it. */
export function StopDialog(props: { session: Session; onStop: () => void; onClose: () => void }) {
  return (
    <Confirm
      title={catalogue.parts.stop.title}
      verb={catalogue.parts.stop.verb}
      keep={catalogue.parts.stop.keep}
      onConfirm={props.onStop}
      onClose={props.onClose}
    >
      <p>{catalogue.parts.stop.means}</p>
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
