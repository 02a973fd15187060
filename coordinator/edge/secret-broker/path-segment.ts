// Encodes a value as a segment of the path of a URL.

/** Characters that a segment of a path may have (RFC 3986), and that some servers do not decode, as in `/bot123:abc/`. */
const IN_SEGMENT = /%(?:3A|40|24|26|2B|2C|3B|3D)/g

export const encodePathSegment = (value: string): string =>
  encodeURIComponent(value.toWellFormed()).replace(IN_SEGMENT, decodeURIComponent)
