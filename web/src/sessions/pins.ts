import { useObservable } from "../state/observable";
import { personal } from "../state/personal";

const toggle = (session: string): void => personal.togglePin(session);

/** The sessions that this person keeps at the top, and the way to pin or unpin one. */
export function usePins(): [ReadonlySet<string>, (session: string) => void] {
  return [useObservable(personal.pins, (state) => state.pinned), toggle];
}
