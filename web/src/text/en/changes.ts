/** Texts of the web app: changes. */

export const changes = {};
