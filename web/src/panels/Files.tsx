import { useCallback, useMemo, useState } from "react";
import { get, ofSession, post, wordsOf } from "../api/http";
import type { components } from "../api/schema";
import { Diff } from "../session/Diff";
import { useShort } from "../session/folder";
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
        <Edited key={path} path={path} edits={edits} />
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

function Edited({ path, edits }: { path: string; edits: FileEdit[] }) {
  const short = useShort(path);
  return (
    <details>
      <summary title={path}>
        <code>{short}</code> <span className="why">{plural(edits.length, "edit")}</span>
      </summary>
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
    </details>
  );
}

type Changes = components["schemas"]["Changes"];
type TreeSettled = components["schemas"]["Settled"];

/** What the session's worktree has over its base, and what is to become of it. */
function Worktree({ session }: { session: string }) {
  const rights = useRights();
  const [told, setTold] = useState("");
  const [error, setError] = useState("");
  const [gone, setGone] = useState(false);
  const [message, setMessage] = useState("");
  const diff = useHub(useCallback(() => get<Changes>(ofSession(session, "/diff")), [session]));
  const { files = [], uncommitted = 0, text } = diff.value ?? {};
  const settle = async (action: "merge" | "keep" | "discard"): Promise<void> => {
    if (
      action === "discard" &&
      !confirm("Discard the worktree? What is not merged is kept on a backup ref.")
    )
      return;
    setTold("");
    setError("");
    try {
      const wanted = action === "merge" && message ? { action, message } : { action };
      const done = await post<TreeSettled>(ofSession(session, "/worktree"), wanted);
      setTold(done.text);
      setGone(done.removed ?? false);
      if (!done.removed) diff.again();
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  if (gone) {
    return (
      <section className="card" aria-label="Worktree">
        <p role="status">{told}</p>
      </section>
    );
  }
  return (
    <section className="card" aria-label="Worktree">
      <h2>Worktree {diff.value?.branch}</h2>
      {diff.error && <p className="error">{diff.error}</p>}
      {diff.value && (
        <p className="why">
          {plural(files.length, "file")} changed since {diff.value.base.slice(0, 12)}
          {diff.value.into && ` of ${diff.value.into}`}
          {uncommitted > 0 && `, ${uncommitted} not committed`}
        </p>
      )}
      {text && (
        <details>
          <summary>The whole change</summary>
          <Terminal text={text} />
        </details>
      )}
      {rights.includes("manage") && uncommitted > 0 && (
        <label className="field">
          Commit what is not committed, before a merge, with this message
          <input value={message} onChange={(event) => setMessage(event.target.value)} />
        </label>
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
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}
