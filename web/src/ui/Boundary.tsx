import { Component, type ReactNode } from "react";

interface Props {
  /** What could not be shown, for people: «entry», «question», «page». */
  what: string;
  /** What it was made from. Once that changes it is tried again. */
  raw?: unknown;
  children: ReactNode;
}

/** Keeps what cannot be drawn from taking the rest of the page with it. */
export class Boundary extends Component<Props, { error: unknown; failed: boolean }> {
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
    return <Unshown what={this.props.what} raw={this.props.raw} error={this.state.error} />;
  }
}

/** In the place of something that could not be shown: that it could not, and what it was. */
export function Unshown(props: { what: string; raw?: unknown; error: unknown }) {
  return (
    <div className="unshown">
      <p>
        This {props.what} could not be shown: <span className="why">{told(props.error)}</span>
      </p>
      {props.raw !== undefined && (
        <details>
          <summary>Raw JSON</summary>
          <pre className="raw" tabIndex={0}>
            {json(props.raw)}
          </pre>
        </details>
      )}
    </div>
  );
}

/** An error in words. Anything can be thrown, also what cannot be made a text of. */
function told(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "unknown error";
  }
}

const LONGEST = 20_000;

function json(raw: unknown): string {
  try {
    return (JSON.stringify(raw, null, 2) ?? String(raw)).slice(0, LONGEST);
  } catch (error) {
    return `It is no JSON: ${told(error)}`;
  }
}
