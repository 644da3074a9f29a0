import { useVirtualizer } from "@tanstack/react-virtual";
import { FileLock2, MessageSquare } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { text } from "../text";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import styles from "./changes.module.css";
import type { FileChange } from "./types";

const words = text.changes;
const ROW = 44;
const estimateSize = (): number => ROW;

/** The changed files with the number of their lines; only those in sight are rendered. */
export function FileList(props: {
  files: readonly FileChange[];
  chosen: string | undefined;
  onChoose: (path: string) => void;
  closed: ReadonlySet<string>;
  commented: ReadonlySet<string>;
}) {
  const [filter, setFilter] = useState("");
  const files = useMemo(() => {
    const wanted = filter.toLowerCase();
    return props.files.filter((file) => file.path.toLowerCase().includes(wanted));
  }, [props.files, filter]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: files.length,
    getScrollElement: () => box.current,
    estimateSize,
    overscan: 8,
    initialRect: { width: 0, height: globalThis.innerHeight },
  });
  return (
    <nav className={styles.list} aria-label={words.list}>
      {props.files.length > 8 && (
        <input
          type="search"
          value={filter}
          aria-label={words.filter}
          placeholder={words.filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      )}
      <div className={styles.scroll} ref={box}>
        <ul style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const file = files[item.index];
            if (!file) return null;
            return (
              <li key={file.path} style={{ transform: `translateY(${item.start}px)` }}>
                <button
                  type="button"
                  className={styles.file}
                  aria-current={file.path === props.chosen ? "true" : undefined}
                  title={withMarks(file.path)}
                  onClick={() => props.onChoose(file.path)}
                >
                  <FileName path={file.path} />
                  <span className={styles.counts}>
                    {props.commented.has(file.path) && <Icon of={MessageSquare} size={13} />}
                    {props.closed.has(file.path) && <Icon of={FileLock2} size={13} />}
                    {file.status !== "modified" && (
                      <span className={styles.status}>
                        {words.status[file.status] ?? file.status}
                      </span>
                    )}
                    <Counts file={file} />
                  </span>
                </button>
              </li>
            );
          })}
        </ul>
      </div>
    </nav>
  );
}

/** The name is what one looks for; its folder is what may be cut. */
function FileName({ path }: { path: string }) {
  const cut = path.lastIndexOf("/") + 1;
  return (
    <span className={styles.name}>
      <span>
        <Marked text={path.slice(cut)} code />
      </span>
      {cut > 0 && (
        <span className={styles.folder}>
          <Marked text={path.slice(0, cut - 1)} code />
        </span>
      )}
    </span>
  );
}

export function Counts({ file }: { file: FileChange }) {
  if (typeof file.added !== "number" || typeof file.removed !== "number") return null;
  return (
    <>
      <span className={styles.added}>+{file.added}</span>
      <span className={styles.removed}>−{file.removed}</span>
    </>
  );
}
