/** Texts of the web app: composer. */

export const composer = {};
