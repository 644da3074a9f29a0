import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronsUpDown, MessageSquarePlus, Undo2 } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { renderHighlighted } from "../session/CodeBlock";
import type { Piece } from "../session/highlightCache";
import { text } from "../text";
import { css } from "../ui/css";
import { takeFocus } from "../ui/focus";
import { Icon } from "../ui/Icon";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { segmentsOf } from "../ui/marks";
import { TOUCH, useMedia } from "../ui/useMedia";
import styles from "./changes.module.css";
import { type Comment, commentKey, setComment, useComments } from "./comments";
import { LineActions } from "./LineActions";
import {
  blockStarts,
  foldedRows,
  type Line,
  type Pair,
  pairedRows,
  parsePatch,
  type Row,
  unfoldable,
} from "./patch";
import type { BlockId, FileDiff } from "./types";
import { type Colours, useColours } from "./useColours";

export type Layout = "unified" | "split";
const words = text.changes;
const ROW = 21;
const estimateSize = (): number => ROW;

interface Props {
  session: string;
  diff: FileDiff;
  layout: Layout;
  /** All lines are shown, with this one in sight: a file, and no diff. */
  all?: { line: number } | undefined;
  /** Nobody comments or undoes without them. */
  onUndo?: ((block: BlockId) => void) | undefined;
  comments: boolean;
  /** Its name, where the path alone does not tell it from another. */
  label?: string;
}

type Side = "before" | "after";
type Shown =
  | Extract<Row, { kind: "gap" }>
  | { kind: "line"; index: number }
  | Extract<Pair, { kind: "pair" }>
  | { kind: "comment"; key: string; side: Side; line: Line };

/** The changes of one file: only the rows in sight are rendered. */
export function DiffView(props: Props) {
  const { session, diff, layout, onUndo, comments: mayComment, all } = props;
  const patch = useMemo(() => parsePatch(diff.patch ?? ""), [diff]);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const [writing, setWriting] = useState<string>();
  const [picked, setPicked] = useState<string>();
  const touch = useMedia(TOUCH);
  const comments = useComments(session);
  const colours = useColours(patch, diff.path, diff.whole ?? false);
  const starts = useMemo(() => blockStarts(patch.lines), [patch]);
  const noted = useMemo(
    () =>
      new Map(
        comments.filter((one) => one.path === diff.path).map((one) => [commentKey(one), one]),
      ),
    [comments, diff.path],
  );
  const rows = useMemo(() => {
    const folded: Row[] = all
      ? patch.lines.map((_, index) => ({ kind: "line", index }))
      : foldedRows(patch, unfolded);
    const base: (Row | Pair)[] = layout === "split" ? pairedRows(patch.lines, folded) : folded;
    if (!noted.size && !writing) return base;
    return withComments(base, patch.lines, diff.path, (key) => noted.has(key) || key === writing);
  }, [patch, unfolded, layout, noted, writing, diff.path, all]);
  const box = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize,
    getItemKey: useCallback((index: number) => keyOf(rows[index], index), [rows]),
    overscan: 12,
    initialRect: { width: 0, height: globalThis.innerHeight },
  });
  const wanted = all?.line ?? 0;
  useEffect(() => {
    if (wanted > 1) virtual.scrollToIndex(wanted - 1, { align: "center" });
  }, [wanted, virtual]);
  const draw: Draw = {
    session,
    wanted,
    path: diff.path,
    patch: patch.lines,
    colours,
    noted,
    touch,
    onComment: mayComment ? (touch ? setPicked : setWriting) : undefined,
    onDone: () => setWriting(undefined),
  };
  return (
    <section
      className={styles.diff}
      data-layout={all ? "file" : layout}
      data-coloured={colours !== undefined || undefined}
      ref={box}
      aria-label={props.label ?? (all ? words.contentOf(diff.path) : words.diffOf(diff.path))}
      tabIndex={0}
    >
      <div className={styles.rows} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const block = blockAt(row, patch.lines, starts);
          const undo = (): void => {
            const id = block === undefined ? undefined : patch.blocks[block];
            if (id) onUndo?.(id);
          };
          const places = mayComment && touch ? placesOf(row, patch.lines, diff.path) : [];
          const chosen = places.find(({ key }) => key === picked);
          return (
            // A tap anywhere in a line is as good as one on its number, which is a button.
            // biome-ignore lint/a11y/useKeyWithClickEvents: the number takes the keys
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              className={styles.row}
              style={{ transform: `translateY(${item.start}px)` }}
              onClick={places.length === 1 && !chosen ? () => setPicked(places[0]?.key) : undefined}
            >
              <DiffRow
                row={row}
                draw={draw}
                onUnfold={(how) => {
                  if (row.kind !== "gap") return;
                  setUnfolded(new Set([...unfolded, ...unfoldable(row, how)]));
                }}
              />
              {chosen && (
                <LineActions
                  line={chosen.line[chosen.side]}
                  old={chosen.side === "before"}
                  onComment={() => {
                    setPicked(undefined);
                    setWriting(chosen.key);
                  }}
                  onUndo={block !== undefined && onUndo ? undo : undefined}
                />
              )}
              {block !== undefined && onUndo && !touch && (
                <IconButton
                  icon={Undo2}
                  label={words.undoBlock}
                  className={`${css.button.ghost} ${css.button.small} ${styles.undo}`}
                  onClick={undo}
                />
              )}
            </div>
          );
        })}
      </div>
    </section>
  );
}

interface Draw {
  session: string;
  /** The line that a person looks for; 0 for none. */
  wanted: number;
  path: string;
  patch: readonly Line[];
  colours: Colours | undefined;
  noted: ReadonlyMap<string, Comment>;
  /** A number shows what can be done with its line, instead of doing it. */
  touch: boolean;
  onComment: ((key: string) => void) | undefined;
  onDone: () => void;
}

function DiffRow(props: {
  row: Shown;
  draw: Draw;
  onUnfold: (how: "up" | "down" | "all") => void;
}): ReactNode {
  const { row, draw } = props;
  switch (row.kind) {
    case "gap":
      return <Gap gap={row} onUnfold={props.onUnfold} />;
    case "comment":
      return <CommentRow row={row} draw={draw} />;
    case "line": {
      const line = draw.patch[row.index];
      return line ? <UnifiedLine line={line} draw={draw} /> : null;
    }
    case "pair":
      return (
        <div className={styles.pair}>
          <HalfLine line={at(draw.patch, row.left)} side="before" draw={draw} />
          <HalfLine line={at(draw.patch, row.right)} side="after" draw={draw} />
        </div>
      );
  }
}

const at = (lines: readonly Line[], index: number | undefined): Line | undefined =>
  index === undefined ? undefined : lines[index];

function UnifiedLine({ line, draw }: { line: Line; draw: Draw }) {
  const side: Side = line.sign === "-" ? "before" : "after";
  return (
    <div
      className={styles.line}
      data-sign={line.sign}
      data-wanted={(draw.wanted > 0 && line.after === draw.wanted) || undefined}
    >
      <LineNumber line={line} side="before" draw={draw} button={line.sign === "-"} />
      <LineNumber line={line} side="after" draw={draw} button={line.sign !== "-"} />
      <Code line={line} side={side} draw={draw} />
    </div>
  );
}

function HalfLine(props: { line: Line | undefined; side: Side; draw: Draw }) {
  const { line, side, draw } = props;
  if (!line) return <div className={styles.half} data-empty="" />;
  return (
    <div className={styles.half} data-sign={line.sign}>
      <LineNumber
        line={line}
        side={side}
        draw={draw}
        button={side === "after" || line.sign === "-"}
      />
      <Code line={line} side={side} draw={draw} />
    </div>
  );
}

function LineNumber(props: { line: Line; side: Side; draw: Draw; button: boolean }) {
  const { line, side, draw } = props;
  const number = line[side];
  const { onComment } = draw;
  if (!number) return <span className={styles.number} aria-hidden="true" data-no-copy />;
  if (!onComment || !props.button) {
    return (
      <span className={styles.number} data-no-copy>
        {number}
      </span>
    );
  }
  const { touch } = draw;
  const label = side === "before" ? words.commentOld(number) : words.comment(number);
  return (
    <button
      type="button"
      className={`${styles.number} ${styles.add}`}
      aria-label={touch ? words.line(number) : label}
      title={touch ? undefined : label}
      data-no-copy
      data-line-number=""
      onClick={() => onComment(commentKey({ path: draw.path, side, line: number }))}
    >
      <span className={styles.plus} aria-hidden="true">
        <Icon of={MessageSquarePlus} size={13} />
      </span>
      {number}
    </button>
  );
}

const NO_PIECES: Piece[] = [];

function Code({ line, side, draw }: { line: Line; side: Side; draw: Draw }) {
  const pieces = draw.colours?.[side][line[side] - 1] ?? NO_PIECES;
  return (
    <span className={styles.code}>
      <span className={styles.sign} data-no-copy>
        {line.sign}
      </span>
      {pieces.length ? (
        <bdi className={css.marked.marked} data-code="" dir="ltr">
          {renderHighlighted(segmentsOf(line.text, true), [pieces])}
        </bdi>
      ) : (
        <Marked text={line.text} code />
      )}
      {line.noNewline && <span className={styles.hint}> {words.noNewline}</span>}
    </span>
  );
}

function Gap(props: {
  gap: Extract<Row, { kind: "gap" }>;
  onUnfold: (how: "up" | "down" | "all") => void;
}) {
  const { from, to, count } = props.gap;
  return (
    <div className={styles.gap}>
      <Icon of={ChevronsUpDown} size={14} />
      <span>{words.unchanged(count)}</span>
      {to > from && (
        <span className={css.layout.buttons}>
          {count > 20 && (
            <>
              <button
                type="button"
                className={`${css.button.ghost} ${css.button.small}`}
                onClick={() => props.onUnfold("down")}
              >
                {words.showDown}
              </button>
              <button
                type="button"
                className={`${css.button.ghost} ${css.button.small}`}
                onClick={() => props.onUnfold("up")}
              >
                {words.showUp}
              </button>
            </>
          )}
          <button
            type="button"
            className={`${css.button.ghost} ${css.button.small}`}
            onClick={() => props.onUnfold("all")}
          >
            {words.showAll}
          </button>
        </span>
      )}
    </div>
  );
}

function CommentRow({ row, draw }: { row: Extract<Shown, { kind: "comment" }>; draw: Draw }) {
  const kept = draw.noted.get(row.key);
  const [typed, setTyped] = useState(kept?.text ?? "");
  const { line, side } = row;
  const keep = (words_: string): void => {
    const place = { path: draw.path, side, line: line[side], code: line.text };
    setComment(draw.session, { ...place, text: words_ });
    draw.onDone();
  };
  return (
    <form
      className={styles.comment}
      onSubmit={(event) => {
        event.preventDefault();
        keep(typed);
      }}
    >
      <textarea
        aria-label={`${words.commentField}, ${words.comment(line[side])}`}
        placeholder={words.commentField}
        rows={2}
        value={typed}
        ref={kept ? undefined : takeFocus}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={() => typed.trim() && typed !== kept?.text && keep(typed)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep(typed);
          event.stopPropagation();
        }}
      />
      <span className={css.layout.buttons}>
        <button type="submit" className={css.button.small} disabled={!typed.trim()}>
          {words.saveComment}
        </button>
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => keep("")}
        >
          {words.removeComment}
        </button>
      </span>
    </form>
  );
}

/** Comments are shown below their lines. */
function withComments(
  rows: readonly (Row | Pair)[],
  lines: readonly Line[],
  path: string,
  has: (key: string) => boolean,
): Shown[] {
  const shown: Shown[] = [];
  for (const row of rows) {
    shown.push(row);
    if (row.kind === "gap") continue;
    for (const place of placesOf(row, lines, path)) {
      if (has(place.key)) shown.push({ kind: "comment", ...place });
    }
  }
  return shown;
}

/** The lines of a row that a comment can be about. */
function placesOf(
  row: Shown,
  lines: readonly Line[],
  path: string,
): { key: string; side: Side; line: Line }[] {
  const indexes =
    row.kind === "line" ? [row.index] : row.kind === "pair" ? [row.left, row.right] : [];
  return [...new Set(indexes)].flatMap((index) => {
    const line = at(lines, index);
    if (!line) return [];
    const side: Side = line.sign === "-" ? "before" : "after";
    return [{ key: commentKey({ path, side, line: line[side] }), side, line }];
  });
}

function blockAt(
  row: Shown,
  lines: readonly Line[],
  starts: ReadonlyMap<number, number>,
): number | undefined {
  const indexes =
    row.kind === "line" ? [row.index] : row.kind === "pair" ? [row.left, row.right] : [];
  for (const index of indexes) {
    const block = at(lines, index)?.block ?? -1;
    if (block >= 0 && starts.get(block) === index) return block;
  }
  return undefined;
}

function keyOf(row: Shown | undefined, index: number): string | number {
  switch (row?.kind) {
    case "line":
      return row.index;
    case "pair":
      return `${row.left ?? ""}:${row.right ?? ""}`;
    case "gap":
      return `gap:${row.from}:${row.to}`;
    case "comment":
      return row.key;
    default:
      return index;
  }
}
