// Chooses where a browser continues after the sign-in.

/**
 * Reads the query parameter `next`, which must be a path of this origin: it may come from a stranger's link.
 * @param {string} search the query of the page
 * @param {string} origin the origin of the page
 * @returns {string | null} an absolute URL of this origin
 */
export function getNextUrl(search, origin) {
  const next = new URLSearchParams(search).get('next')
  // Browsers read \ as /, ignore tabs and newlines in URLs, and read // as the start of a host.
  if (next === null || !/^\/(?!\/)[^\\\s\p{C}]*$/u.test(next)) return null
  const url = URL.parse(next, origin)
  // Not its path, which may start with // after dots are resolved.
  return url?.origin === origin ? url.href : null
}
