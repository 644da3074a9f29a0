export const SHOW_KEYS = "quarterdeck:keys";

/** Show the list of keys: for those who do not know its key, or have switched the keys off. */
export const showKeys = (): boolean => window.dispatchEvent(new Event(SHOW_KEYS));
