/** Texts of the web app: app. */

export const app = {};
