// The slug of a share in a URL of the main origin.

/** The slug is a label of a host name. */
const SLUG = /^[a-z0-9-]{1,63}$/

export const isSlug = (text: string): boolean => SLUG.test(text)
