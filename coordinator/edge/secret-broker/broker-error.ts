// The errors that the broker sends to programs of boxes, as plain text with the code in a header.
import { type ServerResponse, STATUS_CODES } from 'node:http'

/** Code → status. */
const STATUSES = {
  bad_request: 400,
  value_has_lines: 400,
  address_refused: 403,
  host_not_brokered: 403,
  location_not_allowed: 403,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  wrong_host: 421,
  too_many_requests: 429,
  headers_too_large: 431,
  secret_damaged: 500,
  upstream_certificate: 502,
  upstream_encoding: 502,
  upstream_invalid: 502,
  upstream_unreachable: 502,
  broker_unavailable: 503,
  upstream_timeout: 504,
} as const
export type BrokerErrorCode = keyof typeof STATUSES

export const BROKER_ERROR_HEADER = 'boxwood-broker-error'

/** The message is sent to the program. It must not contain anything that a server has sent. */
export class BrokerError extends Error {
  override name = 'BrokerError'
  readonly code: BrokerErrorCode

  constructor(code: BrokerErrorCode, message: string) {
    super(message)
    this.code = code
  }

  get status(): number {
    return STATUSES[this.code]
  }
}

/** The rest of the request is not read, so the connection is closed. */
export function sendBrokerError(response: ServerResponse, error: BrokerError): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  response.writeHead(error.status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(toBody(error)),
    [BROKER_ERROR_HEADER]: error.code,
    ...(error.code === 'too_many_requests' && { 'Retry-After': '1' }),
    Connection: 'close',
  })
  response.end(toBody(error))
}

/** The response to a request that cannot be parsed. */
export const formatBrokerError = (error: BrokerError): string =>
  [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(toBody(error))}`,
    `${BROKER_ERROR_HEADER}: ${error.code}`,
    'Connection: close',
    '',
    toBody(error),
  ].join('\r\n')

const toBody = ({ message }: BrokerError): string => `Boxwood: ${message}\n`

const CERTIFICATE_ERROR =
  /^(?:CERT_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|INVALID_CA|PATH_LENGTH|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/

/** Describes the failure of a request to the real host. */
export function toBrokerError(error: NodeJS.ErrnoException, host: string): BrokerError {
  if (error instanceof BrokerError) return error
  const code = /^[A-Z][A-Z0-9_]{0,63}$/.test(error.code ?? '') ? error.code : 'unknown error'
  if (CERTIFICATE_ERROR.test(error.code ?? ''))
    return new BrokerError(
      'upstream_certificate',
      `The coordinator does not trust the certificate of ${host} (${code}).`,
    )
  if (error.code === 'ERR_UNESCAPED_CHARACTERS')
    return new BrokerError('bad_request', 'The path of the request has characters that are not allowed.')
  if (error.code?.startsWith('HPE_') || error.code === 'ERR_INVALID_CHAR')
    return new BrokerError(
      'upstream_invalid',
      `The request or the response of ${host} is not valid HTTP (${code}).`,
    )
  return new BrokerError('upstream_unreachable', `The coordinator has no response of ${host} (${code}).`)
}
