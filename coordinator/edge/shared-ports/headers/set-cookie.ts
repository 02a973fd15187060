// Set-Cookie headers of the box: its cookies stay on the origin of the link, and never have a name of Boxwood.

const BOXWOOD_COOKIE = /^(?:__(?:host|secure)-)?boxwood_/i

/** Returns the header without Domain; null: the cookie has a name of Boxwood. */
export function filterSetCookie(value: string): string | null {
  const [pair = '', ...attributes] = value.split(';')
  // Browsers send a cookie without a name as its value, which would look like a name.
  if (BOXWOOD_COOKIE.test(pair.replace(/^[\s=]+/, ''))) return null
  const kept = attributes.filter((attribute) => !/^\s*domain\s*(?:=|$)/i.test(attribute))
  return [pair, ...kept].join(';')
}
