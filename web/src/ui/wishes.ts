// What a person has chosen for this browser: notifications, sound, light or dark.
import { subscribe, unsubscribe } from "./push";

export type Wish = "notify" | "push" | "sound";
export type Theme = "system" | "light" | "dark";

const WISH = "quarterdeck.wish.";
const THEME = "quarterdeck.theme";

export const wanted = (wish: Wish): boolean => localStorage.getItem(WISH + wish) === "yes";

/** Choose; for notifications the browser asks first. Gives whether it is so now, or throws why not. */
export async function choose(wish: Wish, on: boolean): Promise<boolean> {
  if (wish === "push" && on) await subscribe();
  if (wish === "notify" && on && (await Notification.requestPermission()) !== "granted")
    return false;
  if (on) localStorage.setItem(WISH + wish, "yes");
  else localStorage.removeItem(WISH + wish);
  if (wish === "push" && !on) await unsubscribe();
  return on;
}

export const theme = (): Theme => (localStorage.getItem(THEME) as Theme | null) ?? "system";

export function setTheme(chosen: Theme): void {
  if (chosen === "system") localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, chosen);
  showTheme();
}

export function showTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Two soft notes. */
export function chime(): void {
  const context = new AudioContext();
  [660, 880].forEach((pitch, index) => {
    const tone = context.createOscillator();
    const volume = context.createGain();
    const at = context.currentTime + index * 0.14;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(0.12, at + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.35);
    tone.connect(volume).connect(context.destination);
    tone.start(at);
    tone.stop(at + 0.4);
  });
  setTimeout(() => void context.close(), 1000);
}
