/** Texts of the web app: search. */

export const search = {};
