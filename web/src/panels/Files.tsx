import { useMemo } from "react";
import { ChangesSummary } from "../changes/ChangesSummary";
import { Diff } from "../session/Diff";
import { useRelativePath } from "../session/relativePath";
import type { Entry, Story } from "../state/story";
import { appliedEdits, type FileEdit } from "../state/tools";
import { text } from "../text";
import { css } from "../ui/css";
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
      <ChangesSummary session={session.session} head={session.news} />
      {files.map(([path, edits]) => (
        <Edited key={path} path={path} edits={edits} />
      ))}
      {!files.length && (
        <p className={css.texts.muted}>
          {opened.older ? text.changes.noEditsLoaded : text.changes.noEdits}
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
        <code>{short}</code>{" "}
        <span className={css.texts.muted}>{text.changes.edits(edits.length)}</span>
      </summary>
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
    </details>
  );
}
