import { type KeyboardEvent, useCallback, useEffect, useId, useRef, useState } from "react";
import { post, sessionPath } from "../api/http";
import type { Session } from "../api/types";
import type { OpenSession } from "../state/appState";
import { loadDraft } from "../state/drafts";
import { rememberPrompt } from "../state/library";
import { personal } from "../state/personal";
import { isBusy } from "../state/sessions";
import { store, useAppState } from "../state/store";
import type { PromptEntry } from "../state/story";
import { text as words } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { newId } from "../ui/format";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import { TOUCH, useMedia } from "../ui/useMedia";
import { AttachFiles, AttachmentList, type StoreOther, useAttachments } from "./Attachments";
import { AttachmentError, storedName } from "./attachments";
import styles from "./composer.module.css";
import { Dictate } from "./Dictate";
import { suggestFiles } from "./fileSuggestions";
import { QueuedPrompts, UnsentPrompts } from "./PromptQueue";
import { PromptsMenu } from "./PromptsMenu";
import { SuggestionMenu } from "./SuggestionMenu";
import { argumentHint, type MenuItem, matchingItems, type Word, wordAt } from "./suggestions";

const NO_ITEMS: MenuItem[] = [];
const UPLOADS = "uploads";

/** The field in which a person writes prompts. */
export function Composer({ session, opened }: { session: Session; opened: OpenSession }) {
  const id = session.session;
  const [text, setText] = useDraft(id);
  /** How many prompts back the history key has gone. */
  const [back, setBack] = useState(0);
  const [caret, setCaret] = useState(0);
  const [selected, setSelected] = useState(0);
  const [focused, setFocused] = useState(false);
  /** Where the word begins whose menu was closed: it stays closed until another word is begun. */
  const [closed, setClosed] = useState<number>();
  const [note, setNote] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  const menu = useId();
  const action = useAction();
  const touch = useMedia(TOUCH);
  const maySteer = useAppState((state) => state.me?.rights.includes("steer") ?? false);
  const mayManage = useAppState((state) => state.me?.rights.includes("manage") ?? false);
  const prompts = opened.story.entries.filter(
    (entry): entry is PromptEntry => entry.kind === "prompt",
  );
  const queued = prompts.filter((entry) => entry.stage === "queued");
  const busy = isBusy(session);

  const append = useCallback(
    (more: string) => setText((before) => (before.trim() ? `${before.trimEnd()} ${more}` : more)),
    [setText],
  );
  const storeOther = useCallback<StoreOther>(
    async (file) => {
      if (!mayManage) throw new AttachmentError(words.composer.notOwner(file.name));
      const path = `${UPLOADS}/${newId().slice(-6)}-${storedName(file.name)}`;
      await post(sessionPath(id, "/files"), { path, data: file.data });
      append(`@${path} `);
      setNote(words.composer.stored(path));
    },
    [id, mayManage, append],
  );
  const attachments = useAttachments(storeOther);

  const word = wordAt(text, caret);
  const files = useFileSuggestions(id, word);
  const commands = session.offers?.commands ?? NO_ITEMS;
  const matching = word?.sign === "/" ? matchingItems(commands, word.text) : word ? files : [];
  const items = focused && word?.start !== closed ? matching : NO_ITEMS;
  const choice = selected % Math.max(1, items.length);
  useEscape(items.length > 0, () => setClosed(word?.start));
  if (!word && closed !== undefined) setClosed(undefined);
  const hint = argumentHint(commands, text);

  const put = (next: string, at = next.length): void => {
    setText(next);
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(at, at);
      setCaret(at);
    });
  };
  const insert = (item: MenuItem): void => {
    if (!word) return;
    const start = `${text.slice(0, word.start)}${word.sign}${item.name} `;
    put(start + text.slice(caret), start.length);
  };
  const send = (steer: boolean): void => {
    if (attachments.reading) return;
    const content = attachments.content(text.trim());
    if (content === undefined) return;
    void store.prompts.send(id, newId(), content, steer);
    rememberPrompt(text.trim());
    setText("");
    setBack(0);
    setNote("");
    attachments.clear();
  };
  const interrupt = (): void =>
    void action.run(() => store.command({ command: "session.interrupt", session: id }));
  const showEarlier = (step: number): void => {
    const next = Math.min(prompts.length, Math.max(0, back + step));
    setBack(next);
    setText(next ? (prompts[prompts.length - next]?.text ?? "") : "");
  };
  /** Whether the key was for the menu. */
  const usedByMenu = (event: KeyboardEvent<HTMLTextAreaElement>): boolean => {
    if (!items.length) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setSelected((choice + step + items.length) % items.length);
    const item = items[choice];
    // Enter sends a command that is typed in full, and does not select it first.
    const selects = event.key === "Tab" || (event.key === "Enter" && item?.name !== word?.text);
    const taken = item !== undefined && selects && !event.shiftKey;
    if (taken) {
      insert(item);
      setSelected(0);
    }
    return step !== 0 || taken;
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing) return;
    if (usedByMenu(event)) {
      event.preventDefault();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send(busy && maySteerWith(text));
    } else if (event.key === "Enter" && !event.shiftKey && !touch) {
      event.preventDefault();
      send(false);
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
  if (!maySteer) return <footer className={styles.box}>{words.composer.readOnly}</footer>;
  return (
    <footer
      className={styles.box}
      data-composer
      onDrop={attachments.onDrop}
      onDragOver={(event) => event.preventDefault()}
    >
      <UnsentPrompts session={id} />
      {queued.length > 0 && <QueuedPrompts session={id} queued={queued} />}
      <AttachmentList attachments={attachments} />
      <div className={styles.write}>
        <SuggestionMenu id={menu} items={items} selected={choice} onSelect={insert} />
        <textarea
          ref={area}
          value={text}
          rows={Math.min(10, Math.max(2, text.split("\n").length))}
          aria-label={words.composer.label}
          aria-autocomplete="list"
          aria-controls={items.length ? menu : undefined}
          aria-activedescendant={items.length ? `${menu}-${choice}` : undefined}
          enterKeyHint={touch ? "enter" : "send"}
          placeholder={busy ? words.composer.placeholderBusy : words.composer.placeholderIdle}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart);
            setSelected(0);
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
          onKeyDown={onKeyDown}
          onPaste={attachments.onPaste}
        />
        {hint && (
          <p className={styles.argument}>
            <code>{text.trim()}</code> {hint}
          </p>
        )}
        <div className={css.layout.buttons}>
          <AttachFiles onFiles={attachments.add} />
          <PromptsMenu
            text={text.trim()}
            earlier={prompts.map((entry) => entry.text).reverse()}
            onUse={put}
          />
          <Dictate onText={append} />
          <span className={styles.ends}>
            <button
              type="button"
              className={`${css.button.danger} ${styles.interrupt}`}
              data-idle={!busy || undefined}
              title={words.composer.interruptTitle}
              onClick={interrupt}
            >
              {words.composer.interrupt}
            </button>
            {busy && maySteerWith(text) && (
              <button type="button" title={words.composer.steerTitle} onClick={() => send(true)}>
                {words.composer.steer}
              </button>
            )}
            <button
              type="button"
              className={css.button.primary}
              disabled={attachments.reading}
              title={
                busy
                  ? words.composer.queueTitle
                  : touch
                    ? words.composer.sendTitleTouch
                    : words.composer.sendTitle
              }
              onClick={() => send(false)}
            >
              {busy ? words.composer.queue : words.composer.send}
            </button>
          </span>
        </div>
        {note && (
          <p className={css.texts.muted} role="status">
            {note}
          </p>
        )}
        <ErrorText error={action.error} />
      </div>
    </footer>
  );
}

/** A slash command runs between turns: it cannot steer one. */
const maySteerWith = (text: string): boolean => text.trim() !== "" && !/^\s*\/[\w:.-]+/.test(text);

type SetText = (next: string | ((before: string) => string)) => void;

/** The text of a session's composer, which follows the person to other devices. */
function useDraft(session: string): [string, SetText] {
  const [text, setText] = useState(() => loadDraft(session));
  useEffect(() => personal.draft(session, text), [session, text]);
  useEffect(() => personal.onDraft(session, setText), [session]);
  return [text, setText];
}

/** Files that match the word at the caret. */
function useFileSuggestions(session: string, word: Word | undefined): MenuItem[] {
  const [files, setFiles] = useState<MenuItem[]>([]);
  const query = word?.sign === "@" ? word.text : undefined;
  useEffect(() => {
    if (query === undefined) return;
    let timer: ReturnType<typeof setTimeout>;
    let current = true;
    // The CLI indexes its files with the first request, and finds nothing until it has.
    const look = async (retries: number): Promise<void> => {
      const found = await suggestFiles(session, query);
      if (!current) return;
      setFiles(found.map((name) => ({ name })));
      if (!found.length && retries) timer = setTimeout(() => void look(retries - 1), 400);
    };
    timer = setTimeout(() => void look(3), 60);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [session, query]);
  return files;
}
