// The content of the CLI's messages, as far as the page shows it. It is untrusted and may have any
// form: unknown parts are left out, and never make the page fail.

export interface TextBlock {
  type: "text";
  text: string;
}
export interface ThinkingBlock {
  type: "thinking";
  thinking: string;
}
export interface ToolUseBlock {
  type: "tool_use" | "server_tool_use" | "mcp_tool_use";
  id: string;
  name: string;
  input: Record<string, unknown>;
}
export interface ToolResultBlock {
  type: "tool_result";
  tool_use_id: string;
  content?: unknown;
  is_error?: boolean;
}
export interface ImageBlock {
  type: "image";
  source: { type: string; media_type?: string; data?: string; url?: string };
}
export type Block =
  | TextBlock
  | ThinkingBlock
  | ToolUseBlock
  | ToolResultBlock
  | ImageBlock
  | { type: "other"; raw: unknown };

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

/** The blocks of a message's content, which may be a text or a list. */
export function blocksOf(content: unknown): Block[] {
  if (typeof content === "string") return content ? [{ type: "text", text: content }] : [];
  if (!Array.isArray(content)) return [];
  return content.map(blockOf);
}

function blockOf(raw: unknown): Block {
  if (typeof raw === "string") return { type: "text", text: raw };
  if (!isObject(raw)) return { type: "other", raw };
  switch (raw.type) {
    case "text":
      return { type: "text", text: text(raw.text) };
    case "thinking":
      return { type: "thinking", thinking: text(raw.thinking) };
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      return {
        type: raw.type,
        id: text(raw.id),
        name: text(raw.name),
        input: isObject(raw.input) ? raw.input : {},
      };
    case "tool_result":
      return {
        type: "tool_result",
        tool_use_id: text(raw.tool_use_id),
        content: raw.content,
        is_error: raw.is_error === true,
      };
    case "image":
      return isObject(raw.source)
        ? { type: "image", source: raw.source as ImageBlock["source"] }
        : { type: "other", raw };
    default:
      return { type: "other", raw };
  }
}

/** All text in a content, one block after the other. */
export function plainText(content: unknown): string {
  return blocksOf(content)
    .map((block) => (block.type === "text" ? block.text : ""))
    .filter(Boolean)
    .join("\n");
}

/** Where the hub keeps a picture of an event. */
const PATH = /^\/api\/sessions\/[^/?#]+\/events\/\d+\/pictures\/[0-9a-f]{32}$/;

/** The images in a content: as data URLs, or as paths of the hub. */
export function imagesOf(content: unknown): string[] {
  return blocksOf(content).flatMap((block) => {
    if (block.type !== "image" || block.source.type !== "base64") return [];
    const { media_type, data, url } = block.source;
    if (!/^image\/(png|jpeg|gif|webp)$/.test(text(media_type))) return [];
    if (text(data)) return [`data:${media_type};base64,${data}`];
    return PATH.test(text(url)) ? [text(url)] : [];
  });
}

const LONGEST_TITLE = 200;

/** The names of the documents in a content: PDFs and texts that were attached. */
export function documentsOf(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((raw: unknown) =>
    isObject(raw) && raw.type === "document"
      ? [text(raw.title).slice(0, LONGEST_TITLE) || "document"]
      : [],
  );
}
