/** Texts of the web app: machines. */

export const machines = {};
