/** Texts of the web app: session. */

export const session = {};
