// Replaces placeholders by values in the header values of a request. Header names are never changed.
import type { HeaderPair } from '../../http/forward/raw-headers.ts'
import { BrokerError } from './broker-error.ts'
import type { Substitution } from './substitution.ts'
import type { OpenedSecret } from './value-cache.ts'

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

const BASIC = /^(\s*basic\s+)([a-z0-9+/_-]+={0,2})(\s*)$/i

export type SubstitutedHeaders = {
  headers: readonly HeaderPair[]
  /** What `Authorization: Basic` has, in base64. */
  basic: readonly string[]
}

/**
 * @param headers their values have one character for each byte, as in Node
 * @throws BrokerError
 */
export function substituteHeaders(
  headers: readonly HeaderPair[],
  substitution: Substitution,
): SubstitutedHeaders {
  const basic: string[] = []
  function replaceInValue(value: string): string {
    const [, start, encoded, end] = BASIC.exec(value) ?? []
    if (encoded === undefined) return substitution.replace(value, 'header', encodeForHeader)
    const credentials = Buffer.from(encoded, 'base64').toString('latin1')
    const replaced = substitution.replace(credentials, 'header', (text) => text)
    if (replaced === credentials) return substitution.replace(value, 'header', encodeForHeader)
    const text = Buffer.from(replaced, 'latin1').toString('base64')
    basic.push(text)
    return `${start}${text}${end}`
  }
  return {
    headers: headers.map(
      ([name, value]): HeaderPair => [name, SKIPPED.test(name) ? value : replaceInValue(value)],
    ),
    basic,
  }
}

function encodeForHeader(value: string, { name }: OpenedSecret): string {
  if (!/[\r\n]/.test(value)) return value
  throw new BrokerError(
    'value_has_lines',
    `The value of the secret ${name} has several lines, which a header cannot have. It can be used in \`Authorization: Basic\`, which encodes it, and with \`--in\` in a query, a path or a body. The request was not sent.`,
  )
}
