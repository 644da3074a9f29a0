import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Session } from "../api/types";
import { draftOf, keepDraft } from "../state/drafts";
import { type Opened, store, useDeck } from "../state/store";
import type { PromptEntry } from "../state/story";
import { takeFocus } from "../ui/focus";
import { newId } from "../ui/format";
import { useEscape } from "../ui/useEscape";
import { Menu, type MenuItem, matching, wordAt } from "./menu";
import { Pictures, usePictures } from "./pictures";
import { Switches } from "./Switches";

const NONE: MenuItem[] = [];
const BUSY = new Set(["working", "waiting for you", "compacting", "retrying", "rate limited"]);

/** Where a person writes to the agent. */
export function Composer({ session, opened }: { session: Session; opened: Opened }) {
  const id = session.session;
  const [text, setText] = useState(() => draftOf(id));
  const [back, setBack] = useState(0);
  const [at, setAt] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [files, setFiles] = useState<MenuItem[]>([]);
  const [writing, setWriting] = useState(false);
  /** Where the word begins whose menu was closed: it stays closed until another word is begun. */
  const [closed, setClosed] = useState<number>();
  const area = useRef<HTMLTextAreaElement>(null);
  const pictures = usePictures();
  const maySteer = useDeck((deck) => deck.me?.rights.includes("steer") ?? false);
  const prompts = opened.story.entries.filter(
    (entry): entry is PromptEntry => entry.kind === "prompt",
  );
  const queued = prompts.filter((entry) => entry.stage === "queued");
  const busy = BUSY.has(session.state);

  useEffect(() => keepDraft(id, text), [id, text]);

  const word = wordAt(text, at);
  useEffect(() => {
    if (word?.sign !== "@") return;
    let timer: ReturnType<typeof setTimeout>;
    let wanted = true;
    // The CLI lists its files with the first question, and finds nothing until it has.
    const look = async (again: number): Promise<void> => {
      const found = await store.files(id, word.text);
      if (!wanted) return;
      setFiles(found.map((name) => ({ name, description: "" })));
      if (!found.length && again) timer = setTimeout(() => void look(again - 1), 400);
    };
    timer = setTimeout(() => void look(3), 60);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [id, word?.sign, word?.text]);
  const fitting =
    word?.sign === "/" ? matching(opened.story.commands, word.text) : word ? files : [];
  const items = writing && word?.start !== closed ? fitting : NONE;
  useEscape(items.length > 0, () => setClosed(word?.start));
  if (!word && closed !== undefined) setClosed(undefined);

  const take = (item: MenuItem): void => {
    if (!word) return;
    const next = `${text.slice(0, word.start)}${word.sign}${item.name} ${text.slice(at)}`;
    setText(next);
    const end = word.start + item.name.length + 2;
    requestAnimationFrame(() => {
      area.current?.setSelectionRange(end, end);
      setAt(end);
    });
  };
  const send = (): void => {
    const content = pictures.content(text.trim());
    if (content === undefined) return;
    void store.prompt(id, newId(), content);
    setText("");
    setBack(0);
    pictures.clear();
  };
  const recall = (step: number): void => {
    const next = Math.min(prompts.length, Math.max(0, back + step));
    setBack(next);
    setText(next ? (prompts[prompts.length - next]?.text ?? "") : "");
  };
  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing) return;
    if (items.length) {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (step) {
        event.preventDefault();
        setChosen((chosen + step + items.length) % items.length);
        return;
      }
      const item = items[chosen % items.length];
      // A command that is written whole is sent with Enter, and not chosen first.
      const takes = event.key === "Tab" || (event.key === "Enter" && item?.name !== word?.text);
      if (item && takes && !event.shiftKey) {
        event.preventDefault();
        take(item);
        setChosen(0);
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && busy && !event.repeat) {
      void store.command("session.interrupt", { session: id });
    } else if (event.key === "ArrowUp" && (text === "" || back > 0)) {
      event.preventDefault();
      recall(1);
    } else if (event.key === "ArrowDown" && back > 0) {
      event.preventDefault();
      recall(-1);
    }
  };
  if (!maySteer) return <footer className="composer">You may look, and not steer.</footer>;
  return (
    <footer
      className="composer"
      onDrop={pictures.onDrop}
      onDragOver={(event) => event.preventDefault()}
    >
      <Unsent session={id} />
      {queued.length > 0 && <Queue session={id} queued={queued} />}
      <Pictures pictures={pictures} />
      <div className="write">
        <Menu items={items} chosen={chosen % Math.max(1, items.length)} onTake={take} />
        <textarea
          ref={area}
          value={text}
          rows={Math.min(10, Math.max(2, text.split("\n").length))}
          aria-label="Write to the agent"
          placeholder={busy ? "Queued until the turn is over …" : "What is to be done?"}
          onChange={(event) => {
            setText(event.target.value);
            setAt(event.target.selectionStart);
          }}
          onSelect={(event) => setAt(event.currentTarget.selectionStart)}
          onFocus={() => setWriting(true)}
          onBlur={() => setWriting(false)}
          onKeyDown={pressed}
          onPaste={pictures.onPaste}
        />
        <div className="buttons">
          <label className="button ghost small">
            Picture
            <input
              type="file"
              className="visually-hidden"
              accept="image/png,image/jpeg,image/gif,image/webp"
              multiple
              onChange={(event) => pictures.add(event.target.files ?? [])}
            />
          </label>
          <Switches session={session} story={opened.story} />
          <span className="ends">
            {busy && (
              <button
                type="button"
                className="danger"
                title="Key: Escape"
                onClick={() => void store.command("session.interrupt", { session: id })}
              >
                Interrupt
              </button>
            )}
            <button type="button" className="primary" title="Key: Enter" onClick={send}>
              {busy ? "Queue" : "Send"}
            </button>
          </span>
        </div>
      </div>
    </footer>
  );
}

/** Prompts that wait for their turn: each can be changed or taken back. */
function Queue({ session, queued }: { session: string; queued: PromptEntry[] }) {
  const [changing, setChanging] = useState<{ id: string; text: string }>();
  useEscape(changing !== undefined, () => setChanging(undefined));
  return (
    <ul className="queue" aria-label="Queued prompts">
      {queued.map((prompt) => (
        <li key={prompt.id}>
          {changing?.id === prompt.id ? (
            <form
              onSubmit={(event) => {
                event.preventDefault();
                void store.command("prompt.change", {
                  session,
                  prompt: prompt.id,
                  content: changing.text,
                });
                setChanging(undefined);
              }}
            >
              <textarea
                ref={takeFocus}
                aria-label="Change the prompt"
                value={changing.text}
                onChange={(event) => setChanging({ id: prompt.id, text: event.target.value })}
              />
              <button type="submit" className="small primary">
                Save
              </button>
              <button type="button" className="small" onClick={() => setChanging(undefined)}>
                Back
              </button>
            </form>
          ) : (
            <>
              <span className="stage">queued</span>
              <span className="title">{prompt.text}</span>
              <button
                type="button"
                className="ghost small"
                onClick={() => setChanging({ id: prompt.id, text: prompt.text })}
              >
                Change
              </button>
              <button
                type="button"
                className="ghost small"
                onClick={() => void store.command("prompt.cancel", { session, prompt: prompt.id })}
              >
                Take back
              </button>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Prompts that the hub does not have yet. */
function Unsent({ session }: { session: string }) {
  const unsent = useDeck((deck) => deck.unsent);
  const ours = Object.values(unsent).filter((one) => one.session === session);
  if (!ours.length) return null;
  return (
    <ul className="queue" aria-label="Prompts that the hub does not have yet">
      {ours.map((one) => (
        <li key={one.id}>
          <span className="stage">{one.error ? "not sent" : "sending"}</span>
          <span className="title">
            {typeof one.content === "string" ? one.content : "with pictures"}
          </span>
          {one.error && <span className="error">{one.error}</span>}
          {one.error && (
            <button
              type="button"
              className="ghost small"
              onClick={() => void store.prompt(session, one.id, one.content)}
            >
              Try again
            </button>
          )}
          <button type="button" className="ghost small" onClick={() => store.dropPrompt(one.id)}>
            Drop
          </button>
        </li>
      ))}
    </ul>
  );
}
