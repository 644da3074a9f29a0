// Links that open a file in an editor on this computer. They work where the folder is on it too.

export const EDITORS = ["none", "vscode", "cursor", "zed", "idea"] as const;
export type Editor = (typeof EDITORS)[number];

const KEY = "quarterdeck.editor";

export const editor = (): Editor =>
  EDITORS.find((one) => one === localStorage.getItem(KEY)) ?? "vscode";

export const setEditor = (chosen: Editor): void => localStorage.setItem(KEY, chosen);

/** The address that opens a file at a line; undefined without an editor. */
export function editorLink(chosen: Editor, path: string, line = 1): string | undefined {
  if (!path.startsWith("/")) return undefined;
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  switch (chosen) {
    case "none":
      return undefined;
    case "idea":
      return `idea://open?file=${encodeURIComponent(path)}&line=${line}`;
    default:
      return `${chosen}://file${encoded}:${line}`;
  }
}
