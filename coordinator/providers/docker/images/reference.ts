// The names of images, as the docker command understands them: `debian` is docker.io/library/debian:latest.

export type ImageReference = {
  /** Such as docker.io or 127.0.0.1:5000. */
  domain: string
  path: string
  tag: string | null
  /** `sha256:…` */
  digest: string | null
}

const DEFAULT_DOMAIN = 'docker.io'
const OFFICIAL_PREFIX = 'library/'
/** Docker accepts this old name too. */
const OLD_DEFAULT_DOMAIN = 'index.docker.io'

const DOMAIN =
  /^(?=.{1,253}$)[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?$/
const PATH = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/
const TAG = /^\w[\w.-]{0,127}$/
const DIGEST = /^sha256:[0-9a-f]{64}$/
const IMAGE_ID = /^[0-9a-f]{64}$/

/** The repositories of the images that the provider creates, which no request may name. */
export const OWN_REPOSITORY_PREFIX = 'localhost/boxwood'

/** Returns the rule that the reference breaks, as the rest of a sentence that begins with `image`; null: it is valid. */
export function findReferenceProblem(reference: string): string | null {
  const parsed = parseReference(reference)
  if (parsed.digest !== null && !DIGEST.test(parsed.digest))
    return 'must have a digest of the form sha256:… with 64 hexadecimal digits'
  if (parsed.tag !== null && !TAG.test(parsed.tag))
    return 'must have a tag of letters, digits, _, . and -, such as debian:12'
  if (!DOMAIN.test(parsed.domain)) return 'must have the name of a registry before its first slash'
  if (!PATH.test(parsed.path) || IMAGE_ID.test(reference))
    return 'must be the name of an image in lower case, such as debian:12 or ghcr.io/owner/name:tag'
  if (formatRepository(parsed).startsWith(OWN_REPOSITORY_PREFIX))
    return 'must not be the image of a snapshot. Use the snapshot'
  return null
}

/** The complete name with a tag or a digest. An engine takes no part of it for the id of an image. */
export function normalizeReference(reference: string): string {
  const problem = findReferenceProblem(reference)
  if (problem !== null) throw new Error(`image ${problem}`)
  return formatReference(parseReference(reference))
}

/** A tag beside a digest has no effect, as with the docker command. */
export const formatReference = (reference: ImageReference): string =>
  reference.digest === null
    ? `${formatRepository(reference)}:${reference.tag ?? 'latest'}`
    : `${formatRepository(reference)}@${reference.digest}`

const formatRepository = ({ domain, path }: ImageReference): string => `${domain}/${path}`

/** The shortest name, such as debian:12. */
export function shortenReference(normalized: string): string {
  const official = `${DEFAULT_DOMAIN}/${OFFICIAL_PREFIX}`
  if (normalized.startsWith(official)) return normalized.slice(official.length)
  return normalized.startsWith(`${DEFAULT_DOMAIN}/`)
    ? normalized.slice(DEFAULT_DOMAIN.length + 1)
    : normalized
}

/** Parses a valid reference. */
export function parseReference(reference: string): ImageReference {
  const [name = '', digest = null] = splitOnce(reference, reference.indexOf('@'))
  const slash = name.indexOf('/')
  const first = name.slice(0, Math.max(slash, 0))
  // Otherwise the first component belongs to the path on Docker Hub, such as `owner` in owner/name.
  const hasDomain =
    slash !== -1 && (/[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase())
  const domain = hasDomain && first !== OLD_DEFAULT_DOMAIN ? first : DEFAULT_DOMAIN
  const rest = hasDomain ? name.slice(slash + 1) : name
  const [path = '', tag = null] = splitOnce(rest, rest.indexOf(':', rest.lastIndexOf('/') + 1))
  const isOfficial = domain === DEFAULT_DOMAIN && !path.includes('/')
  return { domain, path: isOfficial ? OFFICIAL_PREFIX + path : path, tag, digest }
}

const splitOnce = (text: string, index: number): [string, string?] =>
  index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)]
