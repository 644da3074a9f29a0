/** Texts of the web app: markdown. */

export const markdown = {};
