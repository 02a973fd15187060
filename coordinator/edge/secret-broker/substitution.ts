// Replaces the placeholders of a request by values.
import { PLACEHOLDER_PATTERN } from '../../../shared/api/secrets.ts'
import type { SecretLocation } from '../../../shared/secret-locations.ts'
import { BrokerError, type BrokerErrorCode } from './broker-error.ts'
import type { OpenedSecret } from './value-cache.ts'

/** What is inserted in the headers and the URL, and in the body. A request may have a placeholder many times. */
const MAX_INSERTED_BYTES = 64 * 1024

const PART_NAMES: Readonly<Record<SecretLocation, string>> = {
  header: 'headers',
  query: 'the query',
  path: 'the path',
  body: 'the body',
}

/** The text for these locations, such as `headers and the query`. */
const describeLocations = (locations: readonly SecretLocation[]): string =>
  new Intl.ListFormat('en').format(locations.map((location) => PART_NAMES[location]))

/** Collects what is inserted in one request. */
export class Substitution {
  /** The ids of the secrets whose values are in the request. */
  readonly secretIds = new Set<string>()
  /** By the placeholder without its prefix. */
  readonly #secrets: ReadonlyMap<string, OpenedSecret>
  readonly #insertedBytes = { head: 0, body: 0 }

  constructor(secrets: readonly OpenedSecret[]) {
    this.#secrets = new Map(
      secrets.map((secret) => [
        PLACEHOLDER_PATTERN.exec(secret.placeholder)?.[0] ?? secret.placeholder,
        secret,
      ]),
    )
  }

  /**
   * Texts have one character for each byte, as in Node. The time does not depend on the number of secrets.
   * @param encode returns the value as the location needs it
   * @param refuse called for a placeholder of a secret that must not be used at the location. Default: throws
   * @throws BrokerError
   */
  replace(
    text: string,
    location: SecretLocation,
    encode: (value: string, secret: OpenedSecret) => string,
    refuse: (secret: OpenedSecret) => void = (secret) => {
      throw createLocationError(secret, location)
    },
  ): string {
    const parts: string[] = []
    let position = 0
    for (const { 0: id, index } of text.matchAll(new RegExp(PLACEHOLDER_PATTERN, 'g'))) {
      const secret = this.#secrets.get(id)
      if (secret === undefined) continue
      const end = index + id.length
      const start = end - secret.placeholder.length
      if (start < position || text.slice(start, end) !== secret.placeholder) continue
      if (secret.in.includes(location)) {
        parts.push(text.slice(position, start), this.#encode(secret, location, encode))
        position = end
      } else refuse(secret)
    }
    return position === 0 ? text : [...parts, text.slice(position)].join('')
  }

  #encode(
    secret: OpenedSecret,
    location: SecretLocation,
    encode: (value: string, secret: OpenedSecret) => string,
  ): string {
    if (secret.value === null)
      throw new BrokerError(
        'secret_damaged',
        `The stored value of the secret ${secret.name} cannot be decrypted. Set its value again with \`box secrets rotate ${secret.name}\`.`,
      )
    const bytes = Buffer.from(encode(secret.value.reveal(), secret))
    const part = location === 'body' ? 'body' : 'head'
    this.#insertedBytes[part] += bytes.length
    if (this.#insertedBytes[part] > MAX_INSERTED_BYTES) throw createTooLargeError(part)
    this.secretIds.add(secret.secretId)
    return bytes.toString('latin1')
  }
}

function createTooLargeError(part: 'head' | 'body'): BrokerError {
  const code: BrokerErrorCode = part === 'body' ? 'body_too_large' : 'headers_too_large'
  const name = part === 'body' ? 'body' : 'headers and the URL'
  return new BrokerError(
    code,
    `The values of secrets in the ${name} of the request have more than ${MAX_INSERTED_BYTES / 1024} KiB.`,
  )
}

/** Names the option that admits the location. */
export function createLocationError(
  { name, in: locations }: OpenedSecret,
  location: SecretLocation,
): BrokerError {
  return new BrokerError(
    'location_not_allowed',
    `The placeholder of the secret ${name} is in ${PART_NAMES[location]} of the request, and its value is used in ${describeLocations(locations)} only. ` +
      `Where the server needs it there, allow it with \`box secrets set ${name} --keep-value --in ${[...locations, location].join()}\`. The request was not sent.`,
  )
}
