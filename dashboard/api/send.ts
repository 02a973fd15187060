// Sends requests, and converts error responses to RequestError.
import { createResponseError, RequestError } from './errors.ts'

export type Fetch = typeof globalThis.fetch

export type Send = <Result>(method: string, path: string, options?: SendOptions) => Promise<Result>

export type SendOptions = {
  /** Sent as JSON. */
  body?: object
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** @param root the URL below which the paths are, with a slash at its end. Resolves to undefined for a response without a body. */
export const createSend =
  (fetch: Fetch, root: string): Send =>
  async <Result>(method: string, path: string, { body, headers, signal }: SendOptions = {}) => {
    const response = await fetchResponse(fetch, new URL(path, root), {
      method,
      headers: {
        accept: 'application/json',
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (response.status === 204) return undefined as Result
    const parsed: unknown = await response.json().catch(() => undefined)
    if (response.ok && parsed !== undefined) return parsed as Result
    throw createResponseError(parsed, response.status, response.headers.get('x-request-id'))
  }

/** Rejects with a RequestError when there is no response, and with the reason of an aborted signal. */
export const fetchResponse = (fetch: Fetch, url: URL, init: RequestInit): Promise<Response> =>
  fetch(url, init).catch((error: Error) => {
    init.signal?.throwIfAborted()
    throw new RequestError('no_response', `The coordinator does not respond. ${error.message}`, 0)
  })
