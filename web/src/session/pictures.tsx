import { type ClipboardEvent, type DragEvent, useCallback, useState } from "react";

const KINDS = /^image\/(png|jpeg|gif|webp)$/;
const LARGEST = 8 * 1024 * 1024;

interface Picture {
  name: string;
  kind: string;
  data: string;
}

export interface PictureBox {
  pictures: Picture[];
  error: string;
  add: (files: Iterable<File>) => void;
  remove: (index: number) => void;
  clear: () => void;
  onPaste: (event: ClipboardEvent) => void;
  onDrop: (event: DragEvent) => void;
  /** A prompt's content: a text, or blocks if there are pictures. Nothing if there is neither. */
  content: (text: string) => unknown;
}

async function readPicture(file: File): Promise<Picture> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return { name: file.name || "picture", kind: file.type, data: btoa(binary) };
}

/** The pictures that go with a prompt: pasted, dropped or chosen. */
export function usePictures(): PictureBox {
  const [pictures, setPictures] = useState<Picture[]>([]);
  const [error, setError] = useState("");
  const add = useCallback((files: Iterable<File>) => {
    for (const file of files) {
      if (!KINDS.test(file.type))
        setError(`${file.name || "that"}: PNG, JPEG, GIF and WebP can be sent.`);
      else if (file.size > LARGEST) setError(`${file.name}: pictures may have up to 8 MB.`);
      else void readPicture(file).then((one) => setPictures((before) => [...before, one]));
    }
  }, []);
  return {
    pictures,
    error,
    add,
    remove: (index) => setPictures(pictures.filter((_, at) => at !== index)),
    clear: () => {
      setPictures([]);
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
      if (!pictures.length) return text || undefined;
      const images = pictures.map((one) => ({
        type: "image",
        source: { type: "base64", media_type: one.kind, data: one.data },
      }));
      return text ? [...images, { type: "text", text }] : images;
    },
  };
}

/** The pictures that were added, each with a way to take it out again. */
export function Pictures({ pictures }: { pictures: PictureBox }) {
  if (!pictures.pictures.length && !pictures.error) return null;
  return (
    <div className="pictures">
      {pictures.pictures.map((one, index) => (
        <span key={index}>
          <img src={`data:${one.kind};base64,${one.data}`} alt={one.name} />
          <button
            type="button"
            className="ghost small"
            aria-label={`Remove ${one.name}`}
            onClick={() => pictures.remove(index)}
          >
            ✕
          </button>
        </span>
      ))}
      {pictures.error && <p className="error">{pictures.error}</p>}
    </div>
  );
}
