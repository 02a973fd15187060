// Encodes a value as each part of a request needs it.
import type { SecretLocation } from '../../../shared/secret-locations.ts'

/** A value of the query of a URL. */
export const encodeParameter = (value: string): string => encodeURIComponent(value.toWellFormed())

/** Characters that a segment of a path may have (RFC 3986), and that some servers do not decode, as in `/bot123:abc/`. */
const IN_SEGMENT = /%(?:3A|40|24|26|2B|2C|3B|3D)/g

export const encodePathSegment = (value: string): string =>
  encodeParameter(value).replace(IN_SEGMENT, decodeURIComponent)

/** A value of application/x-www-form-urlencoded. */
export const encodeForm = (value: string): string =>
  new URLSearchParams({ v: value.toWellFormed() }).toString().slice('v='.length)

/** The content of a string of JSON. */
export const encodeJsonString = (value: string): string => JSON.stringify(value).slice(1, -1)

const ENCODERS: Readonly<Record<SecretLocation, readonly ((value: string) => string)[]>> = {
  header: [],
  query: [encodeParameter],
  path: [encodePathSegment],
  body: [encodeForm, encodeJsonString],
}

/** The value as requests have it, in each encoding. A server that sends back a request encodes these texts again. */
export const listSentTexts = (value: string, locations: readonly SecretLocation[]): string[] => [
  ...new Set([value, ...locations.flatMap((location) => ENCODERS[location].map((encode) => encode(value)))]),
]
