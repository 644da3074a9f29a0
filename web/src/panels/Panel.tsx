import type { Session } from "../api/types";
import type { Opened } from "../state/store";

export default function Panel(props: { session: Session; opened: Opened; onClose: () => void }) {
  return (
    <section className="panel" aria-label="Panels">
      {props.session.session}
    </section>
  );
}
