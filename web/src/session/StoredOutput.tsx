import { useContext, useState } from "react";
import { get, sessionPath } from "../api/http";
import type { components } from "../api/schema";
import { type LongOutput, linesIn } from "../state/longOutput";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { OpenSession } from "./relativePath";
import styles from "./storedOutput.module.css";
import { Terminal } from "./Terminal";

type Part = components["schemas"]["ToolOutput"];

/** Parts that are read with one click: together a megabyte. */
const PARTS = 8;

interface Props {
  output: LongOutput;
  failed: boolean;
  /** The call, and the number of the event with its result. */
  call: string;
  seq: number | undefined;
}

/** Output that the CLI stored in a file: its beginning, its size, and all of it when asked for. */
export function StoredOutput({ output, failed, call, seq }: Props) {
  const session = useContext(OpenSession);
  const [read, setRead] = useState<{ text: string; size: number; next: number | null }>();
  const action = useAction();
  const more = (): void =>
    void action.run(async () => {
      let found = read ?? { text: "", size: 0, next: 0 };
      for (let count = 0; count < PARTS && found.next !== null; count += 1) {
        const path = sessionPath(session, `/events/${seq}/outputs/${encodeURIComponent(call)}`);
        const part = await get<Part>(path, { offset: found.next });
        found = { text: found.text + part.text, size: part.size, next: part.next ?? null };
      }
      setRead(found);
    });
  return (
    <>
      {read ? (
        <section className={styles.whole} aria-label={text.story.wholeOutputLabel} tabIndex={0}>
          {linesIn(read.text).map((lines, index) => (
            <div key={index} className={styles.piece}>
              <Terminal text={lines} failed={failed} bare />
            </div>
          ))}
        </section>
      ) : (
        <Terminal text={output.preview} failed={failed} />
      )}
      {session && seq !== undefined && read?.next !== null && (
        <button type="button" className={css.button.small} disabled={action.busy} onClick={more}>
          {read?.next ? text.story.moreOutput(read.next, read.size) : text.story.wholeOutput}
        </button>
      )}
      <ErrorText error={action.error} />
      <p className={css.texts.muted}>
        {text.story.longOutput(output.size)}{" "}
        <code>
          <Marked text={output.path} code />
        </code>
      </p>
    </>
  );
}
