// What a person has chosen for this browser: notifications, sound, theme, keys.
import { personal } from "../state/personal";
import { subscribe, unsubscribe } from "./push";

export type Preference = "notify" | "push" | "sound";
export const THEMES = ["system", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

const PREFERENCE = "quarterdeck.preference.";
const THEME = "quarterdeck.theme";
const KEYS = "quarterdeck.keys";
const UNDO = "quarterdeck.undo";

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

export const theme = (): Theme =>
  THEMES.find((one) => one === localStorage.getItem(THEME)) ?? "system";

export function setTheme(chosen: Theme): void {
  keepTheme(chosen);
  personal.setting("theme", chosen);
}

/** The theme follows the person to every device. */
personal.onSetting((key, value) => {
  const chosen = THEMES.find((one) => one === value);
  if (key === "theme" && chosen && chosen !== theme()) keepTheme(chosen);
});

function keepTheme(chosen: Theme): void {
  if (chosen === "system") localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, chosen);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Whether single keys are commands; a person who dictates, or a keyboard that misfires, needs them off. */
export const keysEnabled = (): boolean => localStorage.getItem(KEYS) !== "off";

export function setKeysEnabled(on: boolean): void {
  if (on) localStorage.removeItem(KEYS);
  else localStorage.setItem(KEYS, "off");
}

/** The times to undo an answer that can be chosen, in seconds. */
export const UNDO_CHOICES: readonly number[] = [0, 5, 10];
const UNDO_DEFAULT = 5;

/** In seconds: how long an answer that matters can be taken back. 0 sends it at once. */
export function undoSeconds(): number {
  const chosen = Number(localStorage.getItem(UNDO) ?? UNDO_DEFAULT);
  return UNDO_CHOICES.includes(chosen) ? chosen : UNDO_DEFAULT;
}

export function setUndoSeconds(seconds: number): void {
  localStorage.setItem(UNDO, String(seconds));
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
