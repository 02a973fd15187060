// URLs are percent-encoded UTF-8. Node rejects raw bytes above 0x7f.
import { ApiError } from '../../shared/errors.ts'
import { getGeneralCode, type Host } from './errors.ts'

export const ENCODING_RULE =
  'The path and the query of the URL must be percent-encoded UTF-8, such as %C3%BC for ü and %25 for %.'

/** The error for a part of the URL that cannot be decoded. */
export const createEncodingError = (host: Host, part: 'path' | 'query'): ApiError =>
  new ApiError(
    host === 'edge' ? 'invalid_path' : getGeneralCode(host),
    `The ${part} of the URL must be percent-encoded UTF-8, such as %C3%BC for ü and %25 for %.`,
  )

/** Fastify's parser keeps what it cannot decode, so that a wrong path would be read or written. */
export function assertQueryIsUtf8(url: string, host: Host): void {
  const start = url.indexOf('?')
  if (start === -1) return
  try {
    decodeURIComponent(url.slice(start + 1))
  } catch {
    throw createEncodingError(host, 'query')
  }
}
