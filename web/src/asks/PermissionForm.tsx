import { useEffect, useMemo, useRef, useState } from "react";
import { errorText } from "../api/http";
import { MOST } from "../session/Diff";
import { useAppState } from "../state/store";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { takeFocus } from "../ui/focus";
import { escapedJson } from "../ui/marks";
import { useEscape } from "../ui/useEscape";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";
import { CallContent } from "./CallContent";
import { contentOf, FIRST_LINES, hiddenLines } from "./callContent";
import { isReading, useCurrentFile } from "./currentFile";
import { guard, OPEN_CARD } from "./keyGuard";
import { type Lasting, LastingForm } from "./LastingForm";
import { inputOf } from "./request";

const words = catalogue.asks;

type Open = "edit" | "deny" | Lasting | undefined;

/** A tool call that a person decides about. It can be allowed only when all of it is shown, with its file. */
export function PermissionForm({ opened, busy, answer }: FormProps) {
  const input = useMemo(() => inputOf(opened), [opened]);
  // Undefined until it is known who is logged in.
  const mayRead = useAppState((state) => state.me?.rights.includes("steer"));
  const current = useCurrentFile(opened, mayRead === true);
  const before = current.file?.text ?? "";
  const content = useMemo(
    () => contentOf(opened.tool, input, before),
    [opened.tool, input, before],
  );
  const [lines, setLines] = useState(FIRST_LINES);
  const hidden = useMemo(() => hiddenLines(content, lines), [content, lines]);
  const reading = isReading(opened, mayRead !== false, current);
  const mayAllow = hidden === 0 && !reading;
  const [open, setOpen] = useState<Open>();
  const [draft, setDraft] = useState(() => escapedJson(JSON.stringify(input, null, 2)));
  const [wrong, setWrong] = useState("");
  const [reason, setReason] = useState("");
  const part = useRef<HTMLDivElement>(null);
  const back = (): void => {
    const card = part.current?.closest<HTMLElement>(OPEN_CARD);
    if (card) guard.back(card);
    setOpen(undefined);
  };
  useEscape(open !== undefined, back);
  // The card shows something else now: keys wait until a person has seen it.
  const place = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown has changed
  useEffect(() => {
    const card = place.current?.closest<HTMLElement>(OPEN_CARD);
    if (card) guard.changed(card);
  }, [current]);
  const openLasting = (first: Lasting, button: Element): void => {
    // The pressed button disappears: the keys go on acting on the card.
    const card = button.closest<HTMLElement>(OPEN_CARD);
    if (card) guard.back(card);
    setOpen(first);
  };
  const allowEdited = (): void => {
    try {
      answer({ answer: "allow", scope: "once", input: JSON.parse(draft) });
    } catch (error) {
      setWrong(errorText(error));
    }
  };
  return (
    <>
      <CallContent
        place={place}
        tool={opened.tool}
        title={opened.title}
        content={content}
        lines={lines}
        hidden={hidden}
        current={current}
        reading={reading}
        onMore={() => setLines(lines < MOST ? MOST : lines + MOST)}
      />
      {open === "edit" && (
        <div className={styles.formPart} ref={part}>
          <label>
            {words.editedInput}
            <textarea
              ref={takeFocus}
              data-code=""
              value={draft}
              rows={Math.min(14, draft.split("\n").length + 1)}
              spellCheck={false}
              onChange={(event) => setDraft(event.target.value)}
            />
          </label>
          {wrong && <p className={css.texts.error}>{words.invalidJson(wrong)}</p>}
          <div className={`${css.layout.buttons} ${styles.buttons}`}>
            <button
              type="button"
              className={css.button.primary}
              data-primary=""
              disabled={busy}
              onClick={allowEdited}
            >
              {words.allowEdited}
            </button>
            <button type="button" onClick={back}>
              {catalogue.common.back}
            </button>
          </div>
        </div>
      )}
      {open === "deny" && (
        <div className={styles.formPart} ref={part}>
          <label>
            {words.reason}
            <textarea
              ref={takeFocus}
              value={reason}
              rows={2}
              onChange={(event) => setReason(event.target.value)}
            />
          </label>
          <div className={`${css.layout.buttons} ${styles.buttons}`}>
            <button
              type="button"
              className={css.button.danger}
              disabled={busy}
              onClick={() => answer({ answer: "deny", message: reason, stop: false })}
            >
              {words.denyContinue}
            </button>
            <button
              type="button"
              disabled={busy}
              onClick={() => answer({ answer: "deny", message: reason, stop: true })}
            >
              {words.denyStop}
            </button>
            <button type="button" onClick={back}>
              {catalogue.common.back}
            </button>
          </div>
        </div>
      )}
      {(open === "session" || open === "always") && (
        <div ref={part}>
          <LastingForm
            opened={opened}
            busy={busy || !mayAllow}
            first={open}
            answer={answer}
            back={back}
          />
        </div>
      )}
      {open === undefined && (
        <div className={`${css.layout.buttons} ${styles.buttons}`}>
          <button
            type="button"
            className={css.button.primary}
            data-primary=""
            data-key="y"
            title={words.key("y")}
            disabled={busy || !mayAllow}
            onClick={() => answer({ answer: "allow", scope: "once" })}
          >
            {words.allowOnce}
          </button>
          <button
            type="button"
            data-key="s"
            title={words.key("s")}
            disabled={busy || !mayAllow}
            onClick={(event) => openLasting("session", event.currentTarget)}
          >
            {words.allowSession}
          </button>
          <button
            type="button"
            data-key="a"
            title={words.key("a")}
            disabled={busy || !mayAllow}
            onClick={(event) => openLasting("always", event.currentTarget)}
          >
            {words.allowAlways}
          </button>
          <button
            type="button"
            data-key="e"
            title={words.key("e")}
            disabled={busy || !mayAllow}
            onClick={() => setOpen("edit")}
          >
            {words.edit}
          </button>
          <button
            type="button"
            className={css.button.danger}
            data-key="n"
            title={words.key("n")}
            disabled={busy}
            onClick={() => setOpen("deny")}
          >
            {words.deny}
          </button>
        </div>
      )}
    </>
  );
}
