import { MessageSquarePlus, Undo2 } from "lucide-react";
import { text } from "../text";
import { Icon } from "../ui/Icon";
import styles from "./changes.module.css";

const words = text.changes;

/**
 * What can be done with the line that a finger has tapped. Lines are too narrow for a finger to have buttons of
 * their own; a tap beside the line that was meant changes nothing, and these say which line it is.
 */
export function LineActions(props: {
  line: number;
  old: boolean;
  onComment: () => void;
  onUndo?: (() => void) | undefined;
}) {
  return (
    <div className={styles.lineActions}>
      <button type="button" onClick={props.onComment}>
        <Icon of={MessageSquarePlus} />
        {props.old ? words.commentOld(props.line) : words.comment(props.line)}
      </button>
      {props.onUndo && (
        <button type="button" onClick={props.onUndo}>
          <Icon of={Undo2} />
          {words.undoBlock}
        </button>
      )}
    </div>
  );
}
