import { FileText, Paperclip, X } from "lucide-react";
import { type ClipboardEvent, type DragEvent, useCallback, useRef, useState } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import {
  type Attachment,
  AttachmentError,
  contentOf,
  type OtherFile,
  readFile,
  withAttachment,
} from "./attachments";
import styles from "./composer.module.css";

export interface Attachments {
  list: readonly Attachment[];
  error: string;
  /** Whether files are still being read: a prompt that is sent now would lack them. */
  reading: boolean;
  add: (files: Iterable<File>) => void;
  remove: (index: number) => void;
  clear: () => void;
  onPaste: (event: ClipboardEvent) => void;
  onDrop: (event: DragEvent) => void;
  /** A prompt's content: a text, or blocks; undefined if there is neither. */
  content: (prompt: string) => unknown;
}

/** What becomes of a file that no content block can carry. Throws an error with words. */
export type StoreOther = (file: OtherFile) => Promise<void>;

/** The attachments of a prompt: pasted, dropped or chosen. */
export function useAttachments(storeOther?: StoreOther): Attachments {
  const [list, setList] = useState<readonly Attachment[]>([]);
  const [error, setError] = useState("");
  const [open, setOpen] = useState(0);
  /** Files are read at the same time, and each must see those before it. */
  const current = useRef(list);
  const put = useCallback((next: readonly Attachment[]) => {
    current.current = next;
    setList(next);
  }, []);
  const add = useCallback(
    (files: Iterable<File>) => {
      setError("");
      for (const file of files) {
        setOpen((count) => count + 1);
        const taken = async (): Promise<void> => {
          const one = await readFile(file);
          if (one.kind !== "other") put(withAttachment(current.current, one));
          else if (storeOther) await storeOther(one);
          else throw new AttachmentError(text.composer.otherKind(one.name));
        };
        taken()
          .catch((failure: unknown) =>
            setError(failure instanceof Error ? failure.message : String(failure)),
          )
          .finally(() => setOpen((count) => count - 1));
      }
    },
    [put, storeOther],
  );
  return {
    list,
    error,
    reading: open > 0,
    add,
    remove: (index) => put(list.filter((_, at) => at !== index)),
    clear: () => {
      put([]);
      setError("");
    },
    onPaste: (event) => {
      const files = [...event.clipboardData.files];
      if (!files.length) return;
      event.preventDefault();
      add(files);
    },
    onDrop: (event) => {
      event.preventDefault();
      add(event.dataTransfer.files);
    },
    content: (prompt) => contentOf(list, prompt),
  };
}

/** The attachments, each with a button that removes it. */
export function AttachmentList({ attachments }: { attachments: Attachments }) {
  const { list, error, reading } = attachments;
  if (!list.length && !error && !reading) return null;
  return (
    <div className={styles.attachments}>
      {list.length > 0 && (
        <ul aria-label={text.composer.attachments}>
          {list.map((one, index) => (
            <li key={index}>
              {one.kind === "image" ? (
                <img src={`data:${one.type};base64,${one.data}`} alt={one.name} />
              ) : (
                <span className={styles.document}>
                  <Icon of={FileText} /> <span>{one.name}</span>
                </span>
              )}
              <button
                type="button"
                className={`${css.button.ghost} ${css.button.small}`}
                aria-label={text.composer.remove(one.name)}
                onClick={() => attachments.remove(index)}
              >
                <Icon of={X} size={14} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {reading && <span className={css.texts.muted}>{text.composer.reading}</span>}
      <ErrorText error={error} />
    </div>
  );
}

/** The button that opens the browser's file picker; on a phone also the camera and the photos. */
export function AttachFiles({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  return (
    <label
      className={`${css.button.button} ${css.button.ghost} ${css.button.small} ${styles.attach}`}
      title={text.composer.attach}
    >
      <Icon of={Paperclip} />
      <span className={css.texts.visuallyHidden}>{text.composer.attach}</span>
      <input
        type="file"
        className={css.texts.visuallyHidden}
        multiple
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = ""; // so that the same file can be chosen again
        }}
      />
    </label>
  );
}
