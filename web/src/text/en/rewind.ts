/** Texts of the web app: rewind. */

export const rewind = {};
