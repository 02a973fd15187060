// Requests of the setup to the coordinator: one JSON body, through the proxy if there is one.

import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { parseJson } from '../../shared/parse-json.ts'
import { toRequestTarget } from '../tunnel/coordinator-url.ts'
import type { SelectProxy } from '../tunnel/proxy.ts'

export type JsonResponse = {
  status: number
  /** Milliseconds since the epoch; null: the response has no valid Date header. */
  date: number | null
  /** Undefined: the body is not JSON. */
  body: unknown
}

/** No response of the coordinator to the setup is larger. */
const MAX_RESPONSE_BYTES = 64 * 1024

export type JsonRequest = {
  method: 'GET' | 'POST'
  path: string
  body?: unknown
  timeoutMs: number
  signal?: AbortSignal
}

/** Rejects with the error of the connection. */
export async function sendJson(
  url: string,
  { method, path, body, timeoutMs, signal }: JsonRequest,
  selectProxy: SelectProxy,
): Promise<JsonResponse> {
  const target = toRequestTarget(url, path)
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const request = send({
      ...target,
      method,
      agent: selectProxy(url) ?? false,
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
      headers:
        bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': bytes.length },
    })
    request.once('response', resolve)
    request.once('error', reject)
    request.end(bytes)
  })
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    if (length > MAX_RESPONSE_BYTES)
      throw new Error(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`)
    chunks.push(chunk)
  }
  const date = Date.parse(response.headers.date ?? '')
  return {
    status: response.statusCode ?? 0,
    date: Number.isNaN(date) ? null : date,
    body: parseJson(Buffer.concat(chunks).toString()),
  }
}
