// The cookie of dashboard sessions.

/**
 * Browsers accept the prefix `__Host-` only with Secure, Path=/ and without Domain. So no subdomain, such as that of a
 * shared port, can set or read the cookie.
 */
export const SESSION_COOKIE = '__Host-boxwood_session'
