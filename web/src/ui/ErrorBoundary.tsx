import { Component, type ReactNode } from "react";
import { text } from "../text";
import { css } from "./css";
import styles from "./renderError.module.css";

interface Props {
  /** What could not be displayed, for people: "entry", "question", "page". */
  what: string;
  /** Its data. When that changes, rendering is tried again. */
  raw?: unknown;
  children: ReactNode;
}

/** Keeps a component that fails from taking the rest of the page with it. */
export class ErrorBoundary extends Component<Props, { error: unknown; failed: boolean }> {
  override state = { error: undefined as unknown, failed: false };

  static getDerivedStateFromError(error: unknown): { error: unknown; failed: boolean } {
    return { error, failed: true };
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failed && before.raw !== this.props.raw) {
      this.setState({ error: undefined, failed: false });
    }
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return <RenderError what={this.props.what} raw={this.props.raw} error={this.state.error} />;
  }
}

/** In place of a component that failed: why, and its data. */
export function RenderError(props: { what: string; raw?: unknown; error: unknown }) {
  return (
    <div className={styles.box} data-render-error="">
      <p>
        {text.app.notDisplayed(props.what)}{" "}
        <span className={css.texts.muted}>{messageOf(props.error)}</span>
      </p>
      {props.raw !== undefined && (
        <details>
          <summary>{text.app.rawJson}</summary>
          <pre className={css.card.raw} tabIndex={0}>
            {json(props.raw)}
          </pre>
        </details>
      )}
    </div>
  );
}

/** An error in words. Anything can be thrown, even a value that has no text. */
function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return text.app.unknownError;
  }
}

const LONGEST = 20_000;

function json(raw: unknown): string {
  try {
    return (JSON.stringify(raw, null, 2) ?? String(raw)).slice(0, LONGEST);
  } catch (error) {
    return text.app.notJson(messageOf(error));
  }
}
