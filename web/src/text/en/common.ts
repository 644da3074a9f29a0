/** Texts of the web app: common. */

export const common = {};
