import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Session } from "../api/types";
import type { OpenSession } from "../state/appState";
import { loadDraft, saveDraft } from "../state/drafts";
import { isBusy } from "../state/sessions";
import { store, useAppState } from "../state/store";
import type { PromptEntry } from "../state/story";
import { ErrorText } from "../ui/ErrorText";
import { newId } from "../ui/format";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import { AttachImage } from "./AttachImage";
import styles from "./composer.module.css";
import { suggestFiles } from "./fileSuggestions";
import { ImageList, useImages } from "./images";
import { QueuedPrompts, UnsentPrompts } from "./PromptQueue";
import { type MenuItem, matchingItems, SuggestionMenu, wordAt } from "./SuggestionMenu";
import { Switches } from "./Switches";

const NO_ITEMS: MenuItem[] = [];

/** The field in which a person writes prompts. */
export function Composer({ session, opened }: { session: Session; opened: OpenSession }) {
  const id = session.session;
  const [text, setText] = useState(() => loadDraft(id));
  /** How many prompts back the history key has gone. */
  const [back, setBack] = useState(0);
  const [caret, setCaret] = useState(0);
  const [selected, setSelected] = useState(0);
  const [files, setFiles] = useState<MenuItem[]>([]);
  const [focused, setFocused] = useState(false);
  /** Where the word begins whose menu was closed: it stays closed until another word is begun. */
  const [closed, setClosed] = useState<number>();
  const area = useRef<HTMLTextAreaElement>(null);
  const images = useImages();
  const action = useAction();
  const maySteer = useAppState((state) => state.me?.rights.includes("steer") ?? false);
  const prompts = opened.story.entries.filter(
    (entry): entry is PromptEntry => entry.kind === "prompt",
  );
  const queued = prompts.filter((entry) => entry.stage === "queued");
  const busy = isBusy(session);

  useEffect(() => saveDraft(id, text), [id, text]);

  const word = wordAt(text, caret);
  useEffect(() => {
    if (word?.sign !== "@") return;
    let timer: ReturnType<typeof setTimeout>;
    let current = true;
    // The CLI indexes its files with the first request, and finds nothing until it has.
    const look = async (retries: number): Promise<void> => {
      const found = await suggestFiles(id, word.text);
      if (!current) return;
      setFiles(found.map((name) => ({ name })));
      if (!found.length && retries) timer = setTimeout(() => void look(retries - 1), 400);
    };
    timer = setTimeout(() => void look(3), 60);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [id, word?.sign, word?.text]);
  const matching =
    word?.sign === "/"
      ? matchingItems(session.offers?.commands ?? NO_ITEMS, word.text)
      : word
        ? files
        : [];
  const items = focused && word?.start !== closed ? matching : NO_ITEMS;
  useEscape(items.length > 0, () => setClosed(word?.start));
  if (!word && closed !== undefined) setClosed(undefined);

  const insert = (item: MenuItem): void => {
    if (!word) return;
    const next = `${text.slice(0, word.start)}${word.sign}${item.name} ${text.slice(caret)}`;
    setText(next);
    const end = word.start + item.name.length + 2;
    requestAnimationFrame(() => {
      area.current?.setSelectionRange(end, end);
      setCaret(end);
    });
  };
  const send = (): void => {
    const content = images.content(text.trim());
    if (content === undefined) return;
    void store.prompts.send(id, newId(), content);
    setText("");
    setBack(0);
    images.clear();
  };
  const interrupt = (): void =>
    void action.run(() => store.command({ command: "session.interrupt", session: id }));
  const showEarlier = (step: number): void => {
    const next = Math.min(prompts.length, Math.max(0, back + step));
    setBack(next);
    setText(next ? (prompts[prompts.length - next]?.text ?? "") : "");
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing) return;
    if (items.length) {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (step) {
        event.preventDefault();
        setSelected((selected + step + items.length) % items.length);
        return;
      }
      const item = items[selected % items.length];
      // Enter sends a command that is typed in full, and does not select it first.
      const selects = event.key === "Tab" || (event.key === "Enter" && item?.name !== word?.text);
      if (item && selects && !event.shiftKey) {
        event.preventDefault();
        insert(item);
        setSelected(0);
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && busy && !event.repeat) {
      interrupt();
    } else if (event.key === "ArrowUp" && (text === "" || back > 0)) {
      event.preventDefault();
      showEarlier(1);
    } else if (event.key === "ArrowDown" && back > 0) {
      event.preventDefault();
      showEarlier(-1);
    }
  };
  if (!maySteer) return <footer className={styles.box}>You have read-only access.</footer>;
  return (
    <footer
      className={styles.box}
      data-composer
      onDrop={images.onDrop}
      onDragOver={(event) => event.preventDefault()}
    >
      <UnsentPrompts session={id} />
      {queued.length > 0 && <QueuedPrompts session={id} queued={queued} />}
      <ImageList images={images} />
      <div className={styles.write}>
        <SuggestionMenu
          items={items}
          selected={selected % Math.max(1, items.length)}
          onSelect={insert}
        />
        <textarea
          ref={area}
          value={text}
          rows={Math.min(10, Math.max(2, text.split("\n").length))}
          aria-label="Prompt for the agent"
          placeholder={busy ? "Sent when the current turn ends …" : "What should the agent do?"}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart);
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
          onKeyDown={onKeyDown}
          onPaste={images.onPaste}
        />
        <div className="buttons">
          <AttachImage onFiles={images.add} />
          <Switches session={session} />
          <span className={styles.ends}>
            {busy && (
              <button
                type="button"
                className="danger"
                title="End the running turn; the agent stays (key: Escape)"
                onClick={interrupt}
              >
                Interrupt
              </button>
            )}
            <button type="button" className="primary" title="Key: Enter" onClick={send}>
              {busy ? "Queue" : "Send"}
            </button>
          </span>
        </div>
        <ErrorText error={action.error} />
      </div>
    </footer>
  );
}
