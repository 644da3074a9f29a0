import { useSyncExternalStore } from "react";

/** Whether a media query holds. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}

/** Where a page has one column. */
export const NARROW = "(max-width: 760px)";

/** Where a person has no keys but those on the screen, and points with a finger. */
export const TOUCH = "(pointer: coarse)";
