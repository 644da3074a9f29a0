// The menu that opens while one writes: the CLI's commands after «/», files after «@».

export interface MenuItem {
  name: string;
  description: string;
}

export interface Word {
  sign: "/" | "@";
  text: string;
  start: number;
}

/** The command or file name that is being written at a place in a text, if there is one. */
export function wordAt(text: string, at: number): Word | undefined {
  const before = text.slice(0, at);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { sign: "/", text: command[1] ?? "", start: 0 };
  const file = /(^|\s)@([^\s@]*)$/.exec(before);
  if (file) return { sign: "@", text: file[2] ?? "", start: at - (file[2]?.length ?? 0) - 1 };
  return undefined;
}

/** The commands that fit: those that begin so first. */
export function matching(items: readonly MenuItem[], words: string): MenuItem[] {
  const wanted = words.toLowerCase();
  const rank = (item: MenuItem): number => item.name.toLowerCase().indexOf(wanted);
  return items
    .filter((item) => rank(item) >= 0)
    .sort((a, b) => Math.min(rank(a), 1) - Math.min(rank(b), 1) || a.name.localeCompare(b.name))
    .slice(0, 12);
}

export function Menu(props: {
  items: MenuItem[];
  chosen: number;
  onTake: (item: MenuItem) => void;
}) {
  if (!props.items.length) return null;
  return (
    <div className="menu" role="listbox" aria-label="Suggestions">
      {props.items.map((item, index) => (
        <button
          key={item.name}
          type="button"
          role="option"
          aria-selected={index === props.chosen}
          onMouseDown={(event) => {
            event.preventDefault();
            props.onTake(item);
          }}
        >
          <code>{item.name}</code> <span className="why">{item.description}</span>
        </button>
      ))}
    </div>
  );
}
