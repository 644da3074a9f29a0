/** Where the review of a session is. */
export const changesPath = (session: string): string => `/changes/${encodeURIComponent(session)}`;
