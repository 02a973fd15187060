// Sends requests, and converts error responses to RequestError.
import { createResponseError, RequestError } from './errors.ts'

export type Fetch = typeof globalThis.fetch

export type Send = <Result>(method: string, path: string, options?: SendOptions) => Promise<Result>

export type SendOptions = {
  /** Sent as JSON. */
  body?: object
  headers?: Record<string, string>
  signal?: AbortSignal
  /** How long a response may take. Default: 45 s for GET, else unlimited: what a request changes may take long. */
  responseMs?: number
}

/** A connection that is lost without a notice is found after this time. */
export const RESPONSE_MS = 45_000

/** @param root the URL below which the paths are, with a slash at its end. Resolves to undefined for a response without a body. */
export const createSend =
  (fetch: Fetch, root: string): Send =>
  async <Result>(method: string, path: string, options: SendOptions = {}) => {
    const { body, headers, signal, responseMs = method === 'GET' ? RESPONSE_MS : undefined } = options
    const silence = new AbortController()
    const abort = () => silence.abort(new RequestError('no_response', 'The coordinator does not respond.', 0))
    const timer = responseMs === undefined ? undefined : setTimeout(abort, responseMs)
    const response = await fetchResponse(fetch, new URL(path, root), {
      method,
      headers: {
        accept: 'application/json',
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
    }).finally(() => clearTimeout(timer))
    if (response.status === 204) return undefined as Result
    const parsed: unknown = await response.json().catch(() => undefined)
    if (response.ok && parsed !== undefined) return parsed as Result
    throw createResponseError(parsed, response.status, response.headers.get('x-request-id'))
  }

/** Rejects with a RequestError, also for an error response, and with the reason of an aborted signal. */
export async function fetchSuccessful(fetch: Fetch, url: URL, init: RequestInit): Promise<Response> {
  const response = await fetchResponse(fetch, url, init)
  if (response.ok) return response
  const parsed: unknown = await response.json().catch(() => undefined)
  throw createResponseError(parsed, response.status, response.headers.get('x-request-id'))
}

/** Rejects with a RequestError when there is no response, and with the reason of an aborted signal. */
export const fetchResponse = (fetch: Fetch, url: URL, init: RequestInit): Promise<Response> =>
  fetch(url, init).catch((error: Error) => {
    init.signal?.throwIfAborted()
    throw new RequestError('no_response', `The coordinator does not respond. ${error.message}`, 0)
  })
