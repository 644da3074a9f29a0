/** Texts of the web app: loops. */

export const loops = {};
