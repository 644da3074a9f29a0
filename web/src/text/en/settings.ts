/** Texts of the web app: settings. */

export const settings = {};
