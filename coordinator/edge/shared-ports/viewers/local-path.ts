// The paths to which a browser is redirected. A path may come from a link of a stranger: it must not lead to another origin.

/** Browsers ignore tabs and newlines in URLs, read \ as / and // as the start of a host. */
const LOCAL_PATH = /^\/(?![/])[\x21-\x5b\x5d-\x7e]*$/

/** Whether a redirect to the text stays on its origin. Longer paths do not fit into the URLs of a sign-in. */
export const isLocalPath = (text: string): boolean => text.length <= MAX_LENGTH && LOCAL_PATH.test(text)

const MAX_LENGTH = 4096

const encode = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`

/**
 * Converts the URL of a request to a local path with the same meaning. Returns / for a URL without one.
 * @param url as Node's HTTP parser has received it: each character is one byte
 */
export function toLocalPath(url: string): string {
  // The dot segment is removed when the browser resolves the path.
  const path = url.startsWith('//') || url.startsWith('/\\') ? `/.${url}` : url
  const encoded = path.replace(/[^\x21-\x7e]|\\/g, encode)
  return isLocalPath(encoded) ? encoded : '/'
}
