import { type ReactNode, useEffect, useRef } from "react";
import { Modal } from "./Modal";

/** A question before something that cannot be taken back. What is safe has the focus. */
export function Confirm(props: {
  title: string;
  /** The verb on the button that does it. */
  verb: string;
  /** The verb on the other button. */
  keep?: string;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  const safe = useRef<HTMLButtonElement>(null);
  useEffect(() => safe.current?.focus(), []);
  const confirm = (): void => {
    props.onClose();
    props.onConfirm();
  };
  return (
    <Modal title={props.title} onClose={props.onClose}>
      <div className="confirm">
        {props.children}
        <div className="buttons">
          <button type="button" className="danger" onClick={confirm}>
            {props.verb}
          </button>
          <button type="button" ref={safe} onClick={props.onClose}>
            {props.keep ?? "Cancel"}
          </button>
        </div>
      </div>
    </Modal>
  );
}
