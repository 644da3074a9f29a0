import { memo, type ReactNode, useMemo } from "react";
import { text as words } from "../text";
import { css } from "./css";
import { type Segment, segmentsOf } from "./marks";

/** One mark. It names the character in words; its colour only makes it easier to find. */
export function Mark({ segment }: { segment: Segment }) {
  return (
    <span
      className={css.marked.mark}
      data-true={segment.text}
      title={segment.like ? words.app.looksLike(segment.like) : words.app.invisible}
    >
      {segment.mark}
    </span>
  );
}

/** A text from an agent with its invisible characters marked. In code, the order of characters is fixed too. */
export const Marked = memo(function Marked({ text, code }: { text: string; code?: boolean }) {
  const pieces = useMemo(() => segmentsOf(text, code), [text, code]);
  return (
    <bdi className={css.marked.marked} data-code={code || undefined} dir="ltr">
      {renderSegments(pieces)}
    </bdi>
  );
});

export function renderSegments(pieces: readonly Segment[]): ReactNode[] {
  return pieces.map((one, index) =>
    one.mark === undefined ? one.text : <Mark key={index} segment={one} />,
  );
}

/** Copying a part of a text gives the original characters, and not the marks. */
export function copyOriginalText(event: ClipboardEvent): void {
  const selection = document.getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0);
  const within = range.commonAncestorContainer;
  const element = within instanceof Element ? within : within.parentElement;
  if (!element?.closest("pre, code, bdi")) return;
  const copy = range.cloneContents();
  const marks = copy.querySelectorAll<HTMLElement>("[data-true]");
  if (!marks.length) return;
  for (const mark of marks) mark.textContent = mark.dataset.true ?? "";
  for (const sign of copy.querySelectorAll(`[data-no-copy], .${css.texts.visuallyHidden}`))
    sign.remove();
  event.clipboardData?.setData("text/plain", copy.textContent ?? "");
  event.preventDefault();
}
