/** Texts of the web app: story. */

export const story = {};
