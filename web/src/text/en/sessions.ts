/** Texts of the web app: sessions. */

export const sessions = {};
