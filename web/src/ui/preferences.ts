// What a person has chosen for this browser: notifications, sound, theme.
import { subscribe, unsubscribe } from "./push";

export type Preference = "notify" | "push" | "sound";
export type Theme = "system" | "light" | "dark";

const PREFERENCE = "quarterdeck.preference.";
const THEME = "quarterdeck.theme";

export const isEnabled = (preference: Preference): boolean =>
  localStorage.getItem(PREFERENCE + preference) === "yes";

/** Turn a preference on or off; the browser may ask for permission. Gives whether it is on now. */
export async function setPreference(preference: Preference, on: boolean): Promise<boolean> {
  if (preference === "push" && on) await subscribe();
  if (preference === "notify" && on && (await Notification.requestPermission()) !== "granted")
    return false;
  if (on) localStorage.setItem(PREFERENCE + preference, "yes");
  else localStorage.removeItem(PREFERENCE + preference);
  if (preference === "push" && !on) await unsubscribe();
  return on;
}

export const theme = (): Theme => (localStorage.getItem(THEME) as Theme | null) ?? "system";

export function setTheme(chosen: Theme): void {
  if (chosen === "system") localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, chosen);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Two soft tones. */
export function playSound(): void {
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
