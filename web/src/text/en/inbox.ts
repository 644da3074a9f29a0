/** Texts of the web app: inbox. */

export const inbox = {};
