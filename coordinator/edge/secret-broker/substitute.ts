// Replaces placeholders by values in the header values of a request. Bodies, paths, queries and header names are never changed:
// a program could store the value with them on an allowed host, and read it there.
import type { HeaderPair } from '../shared-ports/headers/raw-headers.ts'
import { BrokerError } from './broker-error.ts'
import type { OpenedSecret } from './value-cache.ts'

export type Substitution = {
  headers: readonly HeaderPair[]
  /** The ids of the secrets whose values are in the headers. */
  secretIds: ReadonlySet<string>
  /** What `Authorization: Basic` has, in base64. */
  basic: readonly string[]
}

/**
 * Headers that servers often reflect or store, or that have no credentials: descriptions of the client and the body, conditions,
 * forwarding, trace ids and the metadata of stored objects.
 */
const SKIPPED = new RegExp(
  `^(?:${[
    'accept.*|access-control-.*|a-im|baggage|cache-control|connection|content-.*|correlation-.*|date|dnt|early-data|expect',
    'forwarded|from|host|if-.*|keep-alive|link|location|max-forwards|origin|pragma|prefer|priority|range|referer|save-data',
    'sec-(?!websocket-protocol$).*|slug|te|title|trailer|transfer-encoding|upgrade.*|user-agent|via|warning',
    'b3|grpc-trace-bin|sentry-trace|traceparent|tracestate|uber-trace-id|uberctx-.*',
    'x-(?:amzn-trace-id|b3-.*|cloud-trace-context|correlation-id|datadog-.*|forwarded.*|http-method.*|original-.*|real-ip)',
    'x-(?:amz-tagging|amz-website-redirect-location|ms-tags|(?:ms-)?client-request-id|requested-with|request-id|stainless-.*|trace-.*|[a-z]+(?:-[a-z]+)?-meta-.*|user-agent)',
  ].join('|')})$`,
  'i',
)

/** The prefix of a placeholder may have periods. */
const escapePattern = (text: string): string => text.replace(/\W/g, '\\$&')

const BASIC = /^(\s*basic\s+)([a-z0-9+/_-]+={0,2})(\s*)$/i

/**
 * @param headers their values have one character for each byte, as in Node
 * @throws BrokerError for the placeholder of a secret whose value cannot be decrypted
 */
export function substitute(headers: readonly HeaderPair[], secrets: readonly OpenedSecret[]): Substitution {
  const secretIds = new Set<string>()
  const basic: string[] = []
  if (secrets.length === 0) return { headers, secretIds, basic }
  const byPlaceholder = new Map(secrets.map((secret) => [secret.placeholder, secret]))
  // The longest first: one placeholder may be the end of another one that has a prefix.
  const placeholders = [...byPlaceholder.keys()].toSorted((a, b) => b.length - a.length)
  const pattern = new RegExp(placeholders.map(escapePattern).join('|'), 'g')
  // A value may contain a placeholder or a pattern such as $&: it is inserted as it is.
  const replaceIn = (text: string): string =>
    text.replace(pattern, (placeholder) => {
      const secret = byPlaceholder.get(placeholder)
      if (secret === undefined) return placeholder
      if (secret.value === null)
        throw new BrokerError(
          'secret_damaged',
          `The stored value of the secret ${secret.name} cannot be decrypted. Set its value again with \`box secrets rotate ${secret.name}\`.`,
        )
      secretIds.add(secret.secretId)
      return Buffer.from(secret.value.reveal()).toString('latin1')
    })

  function replaceInValue(value: string): string {
    const [, start, encoded, end] = BASIC.exec(value) ?? []
    if (encoded === undefined) return replaceIn(value)
    const credentials = Buffer.from(encoded, 'base64').toString('latin1')
    const replaced = replaceIn(credentials)
    if (replaced === credentials) return replaceIn(value)
    const text = Buffer.from(replaced, 'latin1').toString('base64')
    basic.push(text)
    return `${start}${text}${end}`
  }

  const replaced = headers.map(
    ([name, value]): HeaderPair => [name, SKIPPED.test(name) ? value : replaceInValue(value)],
  )
  return { headers: replaced, secretIds, basic }
}
