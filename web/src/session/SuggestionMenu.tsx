// The menu that opens while a person writes: the CLI's commands after "/", files after "@".

export interface MenuItem {
  name: string;
  description?: string;
}

export interface Word {
  sign: "/" | "@";
  text: string;
  start: number;
}

/** The command or file name at the caret, if there is one. */
export function wordAt(text: string, caret: number): Word | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { sign: "/", text: command[1] ?? "", start: 0 };
  const file = /(^|\s)@([^\s@]*)$/.exec(before);
  if (file) return { sign: "@", text: file[2] ?? "", start: caret - (file[2]?.length ?? 0) - 1 };
  return undefined;
}

/** The commands that contain a text: those that begin with it first. */
export function matchingItems(items: readonly MenuItem[], typed: string): MenuItem[] {
  const wanted = typed.toLowerCase();
  const rank = (item: MenuItem): number => item.name.toLowerCase().indexOf(wanted);
  return items
    .filter((item) => rank(item) >= 0)
    .sort((a, b) => Math.min(rank(a), 1) - Math.min(rank(b), 1) || a.name.localeCompare(b.name))
    .slice(0, 12);
}

export function SuggestionMenu(props: {
  items: MenuItem[];
  selected: number;
  onSelect: (item: MenuItem) => void;
}) {
  if (!props.items.length) return null;
  return (
    <div className="menu" role="listbox" aria-label="Suggestions">
      {props.items.map((item, index) => (
        <button
          key={item.name}
          type="button"
          role="option"
          aria-selected={index === props.selected}
          onMouseDown={(event) => {
            event.preventDefault();
            props.onSelect(item);
          }}
        >
          <code>{item.name}</code> <span className="muted">{item.description}</span>
        </button>
      ))}
    </div>
  );
}
