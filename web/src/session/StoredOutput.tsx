import type { LongOutput } from "../state/longOutput";
import { text } from "../text";
import { Marked } from "../ui/Marked";
import { Terminal } from "./Terminal";

/** Output that the CLI stored in a file: its beginning, its size, and where all of it is. */
export function StoredOutput({ output, failed }: { output: LongOutput; failed: boolean }) {
  return (
    <>
      <Terminal text={output.preview} failed={failed} />
      <p className="muted">
        {text.story.longOutput(output.size)}{" "}
        <code>
          <Marked text={output.path} code />
        </code>
      </p>
    </>
  );
}
