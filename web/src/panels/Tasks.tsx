import { TaskLine, Todos } from "../session/ToolRow";
import { store, useRights } from "../state/store";
import type { PanelProps } from "./Panel";

/** What is to be done, and what runs in the background. */
export function Tasks({ session, opened }: PanelProps) {
  const rights = useRights();
  const { todos, tasks } = opened.story;
  const stop = (task: string): void => {
    void store
      .control(session.session, { subtype: "stop_task", task_id: task })
      .catch(() => undefined);
  };
  return (
    <>
      <h2>To do</h2>
      {todos.length ? <Todos raw={todos} /> : <p className="why">The agent has made no list.</p>}
      <h2>Background tasks</h2>
      {tasks.size === 0 && <p className="why">Nothing runs in the background.</p>}
      <ul className="tasks">
        {[...tasks.values()].map((task) => (
          <li key={task.id}>
            <strong>{task.title}</strong>
            <TaskLine task={task} />
            {task.status === "running" && rights.includes("manage") && (
              <button type="button" className="small" onClick={() => stop(task.id)}>
                Stop
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
