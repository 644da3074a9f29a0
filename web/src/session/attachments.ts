// What can be attached to a prompt, and how it is sent: images, PDFs and texts as content blocks. Other
// files are stored in the session's folder. Pure, but for reading and shrinking images in the browser.
import { text } from "../text";

const MEGABYTE = 1024 * 1024;
/** The hub takes 24 MiB for a prompt; base64 makes three bytes four, and the text needs room, too. */
export const LARGEST_TOGETHER = 22 * MEGABYTE;
export const LARGEST_PDF = 16 * MEGABYTE;
export const LARGEST_TEXT = 512 * 1024;
/** The hub's own limit for a file of a session's folder. */
export const LARGEST_FILE = 24 * MEGABYTE;
/** The model takes images of up to 5 MB in base64: larger ones are made smaller first. */
const LARGEST_IMAGE = 3.7 * MEGABYTE;
/** A photo of a phone is never larger; more would only fill the memory of the page. */
const LARGEST_SOURCE = 64 * MEGABYTE;
export const MOST_FILES = 20;
const LONGEST_EDGE = 2000;

const IMAGES: Record<string, (bytes: Uint8Array) => boolean> = {
  "image/png": (bytes) => begins(bytes, [0x89, 0x50, 0x4e, 0x47]),
  "image/jpeg": (bytes) => begins(bytes, [0xff, 0xd8, 0xff]),
  "image/gif": (bytes) => begins(bytes, [0x47, 0x49, 0x46, 0x38]),
  "image/webp": (bytes) =>
    begins(bytes, [0x52, 0x49, 0x46, 0x46]) && begins(bytes.subarray(8), [0x57, 0x45, 0x42, 0x50]),
};
const isPdf = (bytes: Uint8Array): boolean => begins(bytes, [0x25, 0x50, 0x44, 0x46, 0x2d]);

export type Attachment =
  | { kind: "image"; name: string; type: string; data: string }
  | { kind: "pdf"; name: string; data: string }
  | { kind: "text"; name: string; text: string };

/** A file that is neither an image, a PDF nor a text. */
export interface OtherFile {
  kind: "other";
  name: string;
  data: string;
}

/** Why a file cannot be attached, in words for the person. */
export class AttachmentError extends Error {}

export interface PickedFile {
  name: string;
  type: string;
  size: number;
  arrayBuffer: () => Promise<ArrayBuffer>;
}

/** Makes an image smaller, or another kind of image a JPEG; undefined if the browser cannot. */
export type Shrink = (file: PickedFile) => Promise<Uint8Array | undefined>;

/** Read a file by what is in it. Throws `AttachmentError`. */
export async function readFile(
  file: PickedFile,
  shrink: Shrink = shrinkImage,
): Promise<Attachment | OtherFile> {
  const name = file.name || text.composer.unnamed;
  if (file.size === 0) throw new AttachmentError(text.composer.empty(name));
  const claimsImage = file.type.startsWith("image/") && file.type !== "image/svg+xml";
  const most = claimsImage ? LARGEST_SOURCE : LARGEST_FILE;
  if (file.size > most)
    throw new AttachmentError(text.composer.tooLargeFile(name, most / MEGABYTE));
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new AttachmentError(text.composer.unreadable(name));
  }
  const image = Object.keys(IMAGES).find((type) => IMAGES[type]?.(bytes));
  if (image) {
    if (bytes.length <= LARGEST_IMAGE)
      return { kind: "image", name, type: image, data: toBase64(bytes) };
    return smaller(file, name, shrink, text.composer.tooLargeImage(name));
  }
  if (isPdf(bytes)) {
    if (bytes.length > LARGEST_PDF)
      throw new AttachmentError(text.composer.tooLargePdf(name, LARGEST_PDF / MEGABYTE));
    return { kind: "pdf", name, data: toBase64(bytes) };
  }
  if (claimsImage) {
    // Such as HEIC, which some browsers can read and the model cannot.
    if (file.type in IMAGES)
      throw new AttachmentError(text.composer.notAsNamed(name, file.type.slice(6).toUpperCase()));
    return smaller(file, name, shrink, text.composer.unreadableImage(name));
  }
  if (file.type === "application/pdf")
    throw new AttachmentError(text.composer.notAsNamed(name, "PDF"));
  const words = asText(bytes);
  if (words === undefined) return { kind: "other", name, data: toBase64(bytes) };
  if (bytes.length > LARGEST_TEXT)
    throw new AttachmentError(text.composer.tooLargeText(name, LARGEST_TEXT / 1024));
  return { kind: "text", name, text: words };
}

async function smaller(
  file: PickedFile,
  name: string,
  shrink: Shrink,
  failure: string,
): Promise<Attachment> {
  const made = await shrink(file).catch(() => undefined);
  if (!made || made.length > LARGEST_IMAGE) throw new AttachmentError(failure);
  return { kind: "image", name, type: "image/jpeg", data: toBase64(made) };
}

/** The bytes that an attachment takes in a prompt. */
export function sizeOf(attachment: Attachment): number {
  return attachment.kind === "text" ? attachment.text.length * 2 : attachment.data.length;
}

/** The list with one more. Throws `AttachmentError` when a prompt cannot take it. */
export function withAttachment(list: readonly Attachment[], one: Attachment): Attachment[] {
  if (list.length >= MOST_FILES) throw new AttachmentError(text.composer.tooMany(MOST_FILES));
  const size = [...list, one].reduce((sum, each) => sum + sizeOf(each), 0);
  if (size > LARGEST_TOGETHER)
    throw new AttachmentError(
      text.composer.tooMuch(one.name, Math.floor((LARGEST_TOGETHER * 3) / 4 / MEGABYTE)),
    );
  return [...list, one];
}

/** A prompt's content: a text, or blocks if there are attachments; undefined if there is neither. */
export function contentOf(list: readonly Attachment[], prompt: string): unknown {
  if (!list.length) return prompt || undefined;
  const blocks: unknown[] = list.map(blockOf);
  return prompt ? [...blocks, { type: "text", text: prompt }] : blocks;
}

function blockOf(one: Attachment): unknown {
  switch (one.kind) {
    case "image":
      return { type: "image", source: { type: "base64", media_type: one.type, data: one.data } };
    case "pdf":
      return {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: one.data },
        title: one.name,
      };
    case "text":
      return {
        type: "document",
        source: { type: "text", media_type: "text/plain", data: one.text },
        title: one.name,
      };
  }
}

/** The name under which a file is stored: one part of a path, and nothing that a shell would read. */
export function storedName(name: string): string {
  const plain = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "");
  return plain.slice(-80) || "file";
}

function asText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function begins(bytes: Uint8Array, wanted: readonly number[]): boolean {
  return wanted.every((byte, at) => bytes[at] === byte);
}

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

async function shrinkImage(file: PickedFile): Promise<Uint8Array | undefined> {
  const picture = await createImageBitmap(file as unknown as Blob);
  const scale = Math.min(1, LONGEST_EDGE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  return blob ? new Uint8Array(await blob.arrayBuffer()) : undefined;
}
