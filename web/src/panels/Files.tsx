import { useCallback, useMemo, useState } from "react";
import { get, post, sessionPath } from "../api/http";
import type { components } from "../api/schema";
import { Diff } from "../session/Diff";
import { useRelativePath } from "../session/relativePath";
import { Terminal } from "../session/Terminal";
import { useRights } from "../state/store";
import type { Entry, Story } from "../state/story";
import { appliedEdits, type FileEdit } from "../state/tools";
import { ErrorText } from "../ui/ErrorText";
import { plural } from "../ui/format";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import type { PanelProps } from "./Panel";

/** The edits that were made in a session, by file, in their order. */
export function editedFiles(story: Story): Map<string, FileEdit[]> {
  const files = new Map<string, FileEdit[]>();
  const look = (entries: readonly Entry[]): void => {
    for (const entry of entries) {
      if (entry.kind !== "tool" || entry.failed || entry.ended === undefined) continue;
      for (const edit of appliedEdits(entry.name, entry.input, entry.structured)) {
        files.set(edit.path, [...(files.get(edit.path) ?? []), edit]);
      }
    }
  };
  look(story.entries);
  for (const thread of story.threads.values()) look(thread);
  return files;
}

/** The files that were changed in this session, with their changes. */
export function Files({ session, opened }: PanelProps) {
  const files = useMemo(() => [...editedFiles(opened.story)], [opened.story]);
  return (
    <>
      {session.spec.worktree && <Worktree session={session.session} />}
      {files.map(([path, edits]) => (
        <Edited key={path} path={path} edits={edits} />
      ))}
      {!files.length && (
        <p className="muted">
          No files were edited by the agent's tools
          {opened.older ? " in the events that are loaded" : ""}.
        </p>
      )}
    </>
  );
}

function Edited({ path, edits }: { path: string; edits: FileEdit[] }) {
  const short = useRelativePath(path);
  return (
    <details>
      <summary title={path}>
        <code>{short}</code> <span className="muted">{plural(edits.length, "edit")}</span>
      </summary>
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
    </details>
  );
}

type Changes = components["schemas"]["Changes"];
type TreeSettled = components["schemas"]["Settled"];

/** The changes of the session's worktree, and what to do with them. */
function Worktree({ session }: { session: string }) {
  const rights = useRights();
  const [report, setReport] = useState("");
  const [removed, setRemoved] = useState(false);
  const action = useAction();
  const [message, setMessage] = useState("");
  const diff = useQuery(useCallback(() => get<Changes>(sessionPath(session, "/diff")), [session]));
  const { files = [], uncommitted = 0, text } = diff.value ?? {};
  const settle = (how: "merge" | "keep" | "discard"): void => {
    const question = "Discard the worktree? Work that is not merged stays on a backup ref.";
    if (how === "discard" && !confirm(question)) return;
    setReport("");
    void action.run(async () => {
      const wanted = how === "merge" && message ? { action: how, message } : { action: how };
      const done = await post<TreeSettled>(sessionPath(session, "/worktree"), wanted);
      setReport(done.text);
      setRemoved(done.removed ?? false);
      if (!done.removed) diff.reload();
    });
  };
  if (removed) {
    return (
      <section className="card" aria-label="Worktree">
        <p role="status">{report}</p>
      </section>
    );
  }
  return (
    <section className="card" aria-label="Worktree">
      <h2>Worktree {diff.value?.branch}</h2>
      <ErrorText error={diff.error} />
      {diff.value && (
        <p className="muted">
          {plural(files.length, "file")} changed since {diff.value.base.slice(0, 12)}
          {diff.value.into && ` of ${diff.value.into}`}
          {uncommitted > 0 && `, ${uncommitted} not committed`}
        </p>
      )}
      {text && (
        <details>
          <summary>Full diff</summary>
          <Terminal text={text} />
        </details>
      )}
      {rights.includes("manage") && uncommitted > 0 && (
        <label className="field">
          Commit message for uncommitted changes (used before a merge)
          <input value={message} onChange={(event) => setMessage(event.target.value)} />
        </label>
      )}
      {rights.includes("manage") && (
        <div className="buttons">
          {(["merge", "keep", "discard"] as const).map((how) => (
            <button
              key={how}
              type="button"
              className="small"
              disabled={action.busy}
              onClick={() => settle(how)}
            >
              {how[0]?.toUpperCase()}
              {how.slice(1)}
            </button>
          ))}
        </div>
      )}
      {report && <p role="status">{report}</p>}
      <ErrorText error={action.error} />
    </section>
  );
}
