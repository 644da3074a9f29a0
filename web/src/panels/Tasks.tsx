import type { Session } from "../api/types";
import { FINISHED, TaskLine, Todos } from "../session/ToolRow";
import { store, useRights } from "../state/store";
import type { Task } from "../state/story";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import { useNow } from "../ui/useNow";
import type { PanelProps } from "./Panel";
import styles from "./panel.module.css";

type RunningTask = Session["holds"]["tasks"][number];

/** The agent's to-do list and its background tasks. */
export function Tasks({ session, opened }: PanelProps) {
  const rights = useRights();
  const action = useAction();
  const now = useNow(1);
  const { todos, tasks: running } = session.holds;
  const finished = [...opened.story.tasks.values()].filter((task) => FINISHED.has(task.status));
  const stop = (task: string): void =>
    void action.run(() => store.control(session.session, { subtype: "stop_task", task_id: task }));
  return (
    <>
      <h2>{text.session.tasks.todos}</h2>
      {todos.length ? (
        <Todos
          todos={todos.map(({ text: said, doing, status = "pending" }) => ({
            text: (status === "in_progress" && doing) || said,
            status,
          }))}
        />
      ) : (
        <p className={css.texts.muted}>{text.session.tasks.noTodos}</p>
      )}
      <h2>{text.session.tasks.background}</h2>
      {!running.length && !finished.length && (
        <p className={css.texts.muted}>{text.session.tasks.noTasks}</p>
      )}
      <ErrorText error={action.error} />
      <ul className={styles.tasks}>
        {running.map((task) => (
          <li key={task.task}>
            <strong>{task.title}</strong>
            <TaskLine task={opened.story.tasks.get(task.task) ?? taskOf(task, now)} />
            {rights.includes("manage") && (
              <button type="button" className={css.button.small} onClick={() => stop(task.task)}>
                {text.session.tasks.stop}
              </button>
            )}
          </li>
        ))}
        {finished.map((task) => (
          <li key={task.id}>
            <strong>{task.title}</strong>
            <TaskLine task={task} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** A running task of which no event is loaded. */
function taskOf(task: RunningTask, now: number): Task {
  return {
    id: task.task,
    title: task.title ?? "",
    status: task.status ?? "running",
    detail: task.last_tool ?? "",
    at: now,
    began: task.since ?? now,
    steps: task.tool_calls ?? 0,
    tokens: task.tokens ?? 0,
  };
}
