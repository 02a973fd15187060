// Sends one POST request to an HTTPS endpoint that a user has chosen: bounded in time and size, and without redirects.
import type { LookupAddress, LookupOptions } from 'node:dns'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { LIMITS } from '../../../shared/limits.ts'
import { replaceControlCharacters } from '../../../shared/report-limits.ts'
import type { Resolve } from '../../base/resolve-name.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import { AddressError, findAddresses } from './addresses.ts'
import type { SetTimer } from './timers.ts'

export type PostRequest = { url: string; headers: Record<string, string>; body: string }
/** `error` is meant for the owner of the workspace. */
export type PostResult = { delivered: true } | { delivered: false; error: string }
/** Never rejects. The signal aborts the request. */
export type Post = (request: PostRequest, signal: AbortSignal) => Promise<PostResult>

export type PostOptions = {
  /** Whether the host may have addresses that are not public. */
  allowsPrivate: boolean
  resolve: Resolve
  setTimer: SetTimer
  /** Trusted certificates instead of the default ones, as PEM. */
  ca?: string
}

const { timeoutSeconds } = LIMITS.auditSink
/** The rest of a response body is not read. */
const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_ERROR_CHARS = 500

export function createPost(options: PostOptions): Post {
  const { setTimer, ca } = options

  function send(
    { url, headers, body }: PostRequest,
    addresses: readonly string[],
    signal: AbortSignal,
  ): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const request = httpsRequest(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      agent: false,
      // The connection uses the addresses that have been checked: resolving the name again may have another result.
      lookup: createLookup(addresses),
      signal,
      ...(ca !== undefined && { ca }),
    })
    request.on('error', reject)
    // Without a listener, a connection that the endpoint upgrades is closed without any event.
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve(response.statusCode ?? 0)
    })
    request.on('response', (response) => {
      const finish = () => resolve(response.statusCode ?? 0)
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_RESPONSE_BYTES) response.destroy()
      })
      // The status counts, also when the body is incomplete.
      response.on('error', finish)
      response.on('close', finish)
    })
    request.end(body)
    return promise
  }

  return async (request, signal) => {
    const timeout = new AbortController()
    const cancelTimer = setTimer(() => timeout.abort(), timeoutSeconds * 1000)
    const aborted = AbortSignal.any([signal, timeout.signal])
    try {
      const addresses = await unlessAborted(findAddresses(new URL(request.url), options, aborted), aborted)
      const status = await unlessAborted(send(request, addresses, aborted), aborted)
      if (status >= 200 && status <= 299) return { delivered: true }
      const redirect = status >= 300 && status <= 399 ? ' Redirects are not followed.' : ''
      return { delivered: false, error: `The endpoint responded with status ${status}.${redirect}` }
    } catch (error) {
      if (timeout.signal.aborted)
        return {
          delivered: false,
          error: `The endpoint did not respond within ${timeoutSeconds} seconds.`,
        }
      return { delivered: false, error: describeError(error) }
    } finally {
      cancelTimer()
    }
  }
}

const createLookup =
  (addresses: readonly string[]): LookupFunction =>
  (_hostname: string, options: LookupOptions, callback) => {
    const found: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }))
    const [first] = found
    if (first === undefined) callback(new Error('The host has no address.'), [])
    else if (options.all) callback(null, found)
    else callback(null, first.address, first.family)
  }

/** Messages of TLS errors contain text that the endpoint has chosen. */
function describeError(error: unknown): string {
  if (error instanceof AddressError) return error.message
  const cause = error instanceof AggregateError ? error.errors[0] : error
  const message = cause instanceof Error ? cause.message || cause.name : String(cause)
  return replaceControlCharacters(`The request failed: ${message}`).slice(0, MAX_ERROR_CHARS)
}
