import { useCallback, useMemo, useState } from "react";
import { get, ofSession, post } from "../api/http";
import { Diff } from "../session/Diff";
import { Terminal } from "../session/Terminal";
import { useRights } from "../state/store";
import type { Entry, Story } from "../state/story";
import { type FileEdit, madeEdits } from "../state/tools";
import { plural } from "../ui/format";
import { useHub } from "../ui/useHub";
import type { PanelProps } from "./Panel";

/** The edits that were made in a session, by file, in their order. */
export function editedFiles(story: Story): Map<string, FileEdit[]> {
  const files = new Map<string, FileEdit[]>();
  const look = (entries: readonly Entry[]): void => {
    for (const entry of entries) {
      if (entry.kind !== "tool" || entry.failed || entry.ended === undefined) continue;
      for (const edit of madeEdits(entry.name, entry.input, entry.structured)) {
        files.set(edit.path, [...(files.get(edit.path) ?? []), edit]);
      }
    }
  };
  look(story.entries);
  for (const thread of story.threads.values()) look(thread);
  return files;
}

/** The files that were changed in this session, with what was changed. */
export function Files({ session, opened }: PanelProps) {
  const files = useMemo(() => [...editedFiles(opened.story)], [opened.story]);
  return (
    <>
      {session.spec.worktree && <Worktree session={session.session} />}
      {files.map(([path, edits]) => (
        <details key={path}>
          <summary>
            <code>{path}</code> <span className="why">{plural(edits.length, "edit")}</span>
          </summary>
          {edits.map((edit, index) => (
            <Diff key={index} edit={edit} />
          ))}
        </details>
      ))}
      {!files.length && (
        <p className="why">
          No file was changed by the agent's own tools
          {opened.older ? " in the part that is loaded" : ""}.
        </p>
      )}
    </>
  );
}

interface WorktreeDiff {
  base?: string;
  branch?: string;
  text?: string;
  truncated?: boolean;
  files?: { path: string; added?: number; removed?: number }[];
}

/** What the session's worktree has over its base, and what is to become of it. */
function Worktree({ session }: { session: string }) {
  const rights = useRights();
  const [told, setTold] = useState("");
  const diff = useHub(useCallback(() => get<WorktreeDiff>(ofSession(session, "/diff")), [session]));
  const settle = async (action: "merge" | "keep" | "discard"): Promise<void> => {
    if (
      action === "discard" &&
      !confirm("Discard the worktree? What is not merged is kept on a backup ref.")
    )
      return;
    try {
      const done = await post<{ told?: string; text?: string }>(ofSession(session, "/worktree"), {
        action,
      });
      setTold(done.told ?? done.text ?? `Done: ${action}.`);
      diff.again();
    } catch (error) {
      setTold(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <section className="card">
      <h2>Worktree {diff.value?.branch}</h2>
      {diff.error && <p className="error">{diff.error}</p>}
      {diff.value?.files && (
        <p className="why">
          {plural(diff.value.files.length, "file")} changed since {diff.value.base?.slice(0, 12)}
        </p>
      )}
      {diff.value?.text && (
        <details>
          <summary>The whole change</summary>
          <Terminal text={diff.value.text} />
        </details>
      )}
      {rights.includes("manage") && (
        <div className="buttons">
          {(["merge", "keep", "discard"] as const).map((action) => (
            <button
              key={action}
              type="button"
              className="small"
              onClick={() => void settle(action)}
            >
              {action[0]?.toUpperCase()}
              {action.slice(1)}
            </button>
          ))}
        </div>
      )}
      {told && <p role="status">{told}</p>}
    </section>
  );
}
