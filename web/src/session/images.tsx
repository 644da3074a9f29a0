import { type ClipboardEvent, type DragEvent, useCallback, useState } from "react";
import { ErrorText } from "../ui/ErrorText";
import styles from "./composer.module.css";

const TYPES = /^image\/(png|jpeg|gif|webp)$/;
const LARGEST = 8 * 1024 * 1024;

interface AttachedImage {
  name: string;
  type: string;
  data: string;
}

export interface AttachedImages {
  list: AttachedImage[];
  error: string;
  add: (files: Iterable<File>) => void;
  remove: (index: number) => void;
  clear: () => void;
  onPaste: (event: ClipboardEvent) => void;
  onDrop: (event: DragEvent) => void;
  /** A prompt's content: a text, or blocks if there are images; undefined if there is neither. */
  content: (text: string) => unknown;
}

async function readImage(file: File): Promise<AttachedImage> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return { name: file.name || "image", type: file.type, data: btoa(binary) };
}

/** The images of a prompt: pasted, dropped or chosen. */
export function useImages(): AttachedImages {
  const [list, setList] = useState<AttachedImage[]>([]);
  const [error, setError] = useState("");
  const add = useCallback((files: Iterable<File>) => {
    for (const file of files) {
      const name = file.name || "This file";
      if (!TYPES.test(file.type))
        setError(`${name}: only PNG, JPEG, GIF and WebP can be attached.`);
      else if (file.size > LARGEST) setError(`${name}: images can have up to 8 MB.`);
      else void readImage(file).then((one) => setList((before) => [...before, one]));
    }
  }, []);
  return {
    list,
    error,
    add,
    remove: (index) => setList(list.filter((_, at) => at !== index)),
    clear: () => {
      setList([]);
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
    content: (text) => {
      if (!list.length) return text || undefined;
      const blocks = list.map((one) => ({
        type: "image",
        source: { type: "base64", media_type: one.type, data: one.data },
      }));
      return text ? [...blocks, { type: "text", text }] : blocks;
    },
  };
}

/** The attached images, each with a button that removes it. */
export function ImageList({ images }: { images: AttachedImages }) {
  if (!images.list.length && !images.error) return null;
  return (
    <div className={styles.images}>
      {images.list.map((one, index) => (
        <span key={index}>
          <img src={`data:${one.type};base64,${one.data}`} alt={one.name} />
          <button
            type="button"
            className="ghost small"
            aria-label={`Remove ${one.name}`}
            onClick={() => images.remove(index)}
          >
            ✕
          </button>
        </span>
      ))}
      <ErrorText error={images.error} />
    </div>
  );
}
