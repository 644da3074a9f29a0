import { memo, type ReactNode, useMemo } from "react";
import { type Segment, segmentsOf } from "./marks";

/** What the marks are for somebody who points at one. */
const HINT = "Not visible in the text itself";

/** One mark. It says what is there in words: its colour only makes it easier to find. */
export function Mark({ segment }: { segment: Segment }) {
  return (
    <span className="hidden-mark" data-true={segment.text} title={HINT}>
      {segment.mark}
    </span>
  );
}

/** A text from an agent in which nothing is hidden. Where code is shown, its order is kept too. */
export const Marked = memo(function Marked({ text, code }: { text: string; code?: boolean }) {
  const pieces = useMemo(() => segmentsOf(text), [text]);
  return (
    <bdi className="marked" data-code={code || undefined} dir="ltr">
      {renderSegments(pieces)}
    </bdi>
  );
});

export function renderSegments(pieces: readonly Segment[]): ReactNode[] {
  return pieces.map((one, index) =>
    one.mark === undefined ? one.text : <Mark key={index} segment={one} />,
  );
}

/** Who copies a part of a code gets what it is, and not the marks. */
export function copyOriginalText(event: ClipboardEvent): void {
  const selection = document.getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0);
  const within = range.commonAncestorContainer;
  const element = within instanceof Element ? within : within.parentElement;
  if (!element?.closest("pre, code, .marked")) return;
  const copy = range.cloneContents();
  const marks = copy.querySelectorAll<HTMLElement>(".hidden-mark");
  if (!marks.length) return;
  for (const mark of marks) mark.textContent = mark.dataset.true ?? "";
  for (const sign of copy.querySelectorAll(".sign, .visually-hidden")) sign.remove();
  event.clipboardData?.setData("text/plain", copy.textContent ?? "");
  event.preventDefault();
}
