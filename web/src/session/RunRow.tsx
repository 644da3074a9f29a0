import { ChevronRight } from "lucide-react";
import { memo } from "react";
import type { RunRowData } from "../state/storyRows";
import { toolName } from "../state/tools";
import { text } from "../text";
import { duration } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import styles from "./tool.module.css";

/** A run of calls in one line. Its calls are rows of the story while it is unfolded. */
export const RunRow = memo(function RunRow(props: {
  row: RunRowData;
  onToggle: (key: string) => void;
}) {
  const { row } = props;
  const counts = new Map<string, number>();
  let failed = 0;
  for (const call of row.calls) {
    const name = toolName(call.name);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    if (call.failed) failed += 1;
  }
  const names = [...counts].map(([name, count]) => `${count} × ${name}`).join(", ");
  return (
    <div className={styles.row} data-run data-state={failed ? "failed" : "done"}>
      <button
        type="button"
        className={styles.head}
        aria-expanded={row.open}
        onClick={() => props.onToggle(row.key)}
      >
        <span className={styles.fold} data-open={row.open || undefined}>
          <Icon of={ChevronRight} size={14} />
        </span>
        <span className={styles.kind}>{text.story.calls(row.calls.length)}</span>
        <span className={styles.title}>
          <Marked text={names} code />
        </span>
        <span className={styles.when}>
          {failed > 0 && <span className={styles.failed}>{text.story.failedCalls(failed)} </span>}
          {duration(row.spent)}
        </span>
      </button>
    </div>
  );
});
