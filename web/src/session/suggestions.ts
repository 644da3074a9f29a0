// Which commands and files are suggested while a person writes. Pure.

export interface MenuItem {
  name: string;
  description?: string | undefined;
  /** The arguments that a command takes. */
  hint?: string | undefined;
  /** The command is from the project, the user or a plugin, and not from the CLI. */
  own?: boolean | undefined;
}

export interface Word {
  sign: "/" | "@";
  text: string;
  start: number;
}

/** More than a person looks through; the rest is counted. */
export const MOST_ITEMS = 60;

/** The command or file name at the caret, if there is one. */
export function wordAt(text: string, caret: number): Word | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { sign: "/", text: command[1] ?? "", start: 0 };
  const file = /(^|\s)@([^\s@]*)$/.exec(before);
  if (file) return { sign: "@", text: file[2] ?? "", start: caret - (file[2]?.length ?? 0) - 1 };
  return undefined;
}

/** Whether a command is for people: the CLI also lists its inner ones, and those that it has no more. */
export function isShown(item: MenuItem): boolean {
  const described = item.description ?? "";
  return (
    !item.name.startsWith("__") &&
    !/^\W*\(?(removed|hidden|internal|deprecated)\)/i.test(described) &&
    !/\bsessions only\)\s*$/.test(described)
  );
}

/** The commands that contain a text: those that begin with it first, and among them a project's own. */
export function matchingItems(items: readonly MenuItem[], typed: string): MenuItem[] {
  const wanted = typed.toLowerCase();
  const place = (item: MenuItem): number => Math.min(item.name.toLowerCase().indexOf(wanted), 1);
  return items
    .filter((item) => place(item) >= 0 && isShown(item))
    .sort(
      (a, b) =>
        place(a) - place(b) ||
        Number(b.own ?? false) - Number(a.own ?? false) ||
        a.name.localeCompare(b.name),
    );
}

/** The hint for the arguments of a command that is typed and has none yet. */
export function argumentHint(items: readonly MenuItem[], typed: string): string {
  const command = /^\/([\w:.-]+)\s*$/.exec(typed)?.[1];
  return items.find((item) => item.name === command)?.hint ?? "";
}
