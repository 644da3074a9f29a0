/** Texts of the web app: newSession. */

export const newSession = {};
