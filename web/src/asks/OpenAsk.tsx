import { useLocation } from "wouter";
import { jumpTo } from "../session/jumpToAsk";
import { store } from "../state/store";

/** The link from a compact card to the full one, which shows everything. */
export function OpenAsk({ ask }: { ask: string }) {
  const [, go] = useLocation();
  const open = (): void => {
    const session = store.get().asks.get(ask)?.session;
    if (!session) return;
    jumpTo(ask);
    go(`/s/${encodeURIComponent(session)}`);
  };
  return (
    <button type="button" className="primary" onClick={open}>
      Open
      <span className="visually-hidden"> to see the whole question</span>
    </button>
  );
}
