import { describe, expect, test } from "vitest";
import {
  type Attachment,
  contentOf,
  LARGEST_FILE,
  LARGEST_PDF,
  LARGEST_TEXT,
  LARGEST_TOGETHER,
  MOST_FILES,
  type PickedFile,
  readFile,
  storedName,
  withAttachment,
} from "../src/session/attachments";
import { documentsOf } from "../src/state/contentBlocks";

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a];
const PDF = [...new TextEncoder().encode("%PDF-1.7\n")];

function file(
  name: string,
  type: string,
  bytes: readonly number[] | string,
  size?: number,
): PickedFile {
  const given =
    typeof bytes === "string" ? new TextEncoder().encode(bytes) : Uint8Array.from(bytes);
  const whole = new Uint8Array(size ?? given.length);
  whole.set(given);
  return { name, type, size: whole.length, arrayBuffer: async () => whole.buffer };
}
const never = async () => undefined;

describe("attachments", () => {
  test("a file is what is in it, whatever it is called", async () => {
    expect(await readFile(file("a.bin", "", PNG))).toMatchObject({
      kind: "image",
      type: "image/png",
    });
    expect(await readFile(file("a.txt", "text/plain", PDF))).toMatchObject({ kind: "pdf" });
    expect(await readFile(file("notes", "", "Grüße"))).toEqual({
      kind: "text",
      name: "notes",
      text: "Grüße",
    });
    expect(await readFile(file("a.zip", "application/zip", [0x50, 0x4b, 0, 1]))).toMatchObject({
      kind: "other",
    });
    expect(await readFile(file("latin.txt", "text/plain", [0xe9, 0x20]))).toMatchObject({
      kind: "other",
    });
  });

  test("wrong and large files are refused in words that name the file", async () => {
    await expect(readFile(file("a.png", "image/png", "no image"))).rejects.toThrow(
      "a.png: the content is not PNG",
    );
    await expect(readFile(file("a.pdf", "application/pdf", "no"))).rejects.toThrow("not PDF");
    await expect(readFile(file("empty", "", ""))).rejects.toThrow("empty");
    await expect(readFile(file("a.pdf", "", PDF, LARGEST_PDF + 1))).rejects.toThrow("up to 16 MB");
    const long = "x".repeat(LARGEST_TEXT + 1);
    await expect(readFile(file("a.log", "", long))).rejects.toThrow("up to 512 kB");
    await expect(readFile(file("a.iso", "", [0, 1], LARGEST_FILE + 1))).rejects.toThrow(
      "up to 24 MB",
    );
    const gone = { ...file("gone", "", "x"), arrayBuffer: () => Promise.reject(new Error()) };
    await expect(readFile(gone)).rejects.toThrow("gone: the file cannot be read");
  });

  test("a large photo and one of another kind become a smaller JPEG, or a clear error", async () => {
    const large = file("photo.png", "image/png", PNG, 5 * 1024 * 1024);
    const small = Uint8Array.from([0xff, 0xd8, 0xff]);
    expect(await readFile(large, async () => small)).toMatchObject({ type: "image/jpeg" });
    await expect(readFile(large, never)).rejects.toThrow("too large");
    const heic = file("photo.heic", "image/heic", [0, 0, 0, 24, 0x66]);
    expect(await readFile(heic, async () => small)).toMatchObject({ kind: "image" });
    const cannot = (): Promise<never> => Promise.reject(new Error("decode"));
    await expect(readFile(heic, cannot)).rejects.toThrow("cannot read the image");
  });

  test("a prompt has so many attachments and so many bytes, and no more", () => {
    const one: Attachment = { kind: "text", name: "a", text: "x" };
    const full = Array.from({ length: MOST_FILES }, () => one);
    expect(() => withAttachment(full, one)).toThrow("up to 20");
    const half: Attachment = { kind: "pdf", name: "b", data: "x".repeat(LARGEST_TOGETHER / 2) };
    const two = withAttachment([half], half);
    expect(() => withAttachment(two, one)).toThrow("together");
  });

  test("the content is blocks of the Messages API, the words last", () => {
    const list: Attachment[] = [
      { kind: "image", name: "a", type: "image/png", data: "AA" },
      { kind: "pdf", name: "b.pdf", data: "BB" },
      { kind: "text", name: "c.md", text: "hi" },
    ];
    expect(contentOf([], "")).toBeUndefined();
    expect(contentOf([], "hello")).toBe("hello");
    const blocks = contentOf(list, "look") as { type: string; title?: string }[];
    expect(blocks.map((one) => one.type)).toEqual(["image", "document", "document", "text"]);
    expect(blocks[2]).toMatchObject({ title: "c.md", source: { type: "text", data: "hi" } });
    expect(contentOf(list, "")).toHaveLength(3);
  });

  test("a stored file has a plain name", () => {
    expect(storedName("../../etc/passwd")).toBe("etc-passwd");
    expect(storedName("My report (1).docx")).toBe("My-report-1-.docx");
    expect(storedName("…")).toBe("file");
    expect(storedName(`${"a".repeat(200)}.zip`)).toHaveLength(80);
  });

  test("the names of attached documents are shown, whatever they are", () => {
    const long = "x".repeat(500);
    const content = [
      { type: "document", title: "a.md" },
      { type: "document", title: 3 },
      null,
      "b",
    ];
    expect(documentsOf(content)).toEqual(["a.md", "document"]);
    expect(documentsOf([{ type: "document", title: long }])[0]).toHaveLength(200);
    expect(documentsOf("text")).toEqual([]);
  });
});
