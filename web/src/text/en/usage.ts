/** Texts of the web app: usage. */

export const usage = {};
