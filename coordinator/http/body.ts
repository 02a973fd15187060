// Parses request bodies: JSON objects up to a size limit. Raw bodies are left to the route's handler.
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { getGeneralCode, type Host } from './errors.ts'
import { findJsonProblem } from './json-problem.ts'

/** Time limit for receiving a whole JSON body. */
const JSON_BODY_TIMEOUT_MS = 60_000
/** Raw bodies: the connection is closed after this long without a byte. */
const RAW_BODY_IDLE_MS = 120_000

type BodyLimits = {
  bytes: number
  ms: number
  tooLarge(): ApiError
  /** Aborts with an ApiError when the client may no longer send the request. */
  signal: AbortSignal | undefined
}

/** Throws the error of `tooLarge` above the limit, request_timeout after `ms`, and the error of the signal. */
function readBody(body: Readable, { bytes, ms, tooLarge, signal }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (error: unknown) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      body.off('data', onData).off('end', onEnd).off('error', settle)
      if (error) reject(error)
      else resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size))
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > bytes) settle(tooLarge())
      else chunks.push(chunk)
    }
    const onEnd = () => settle(null)
    const onAbort = () => {
      if (signal?.reason instanceof ApiError) settle(signal.reason)
    }
    const timer = setTimeout(() => settle(new ApiError('request_timeout')), ms)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) return onAbort()
    body.on('data', onData).once('end', onEnd).once('error', settle)
  })
}

const isJson = (request: FastifyRequest) =>
  /^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')

function limitRawBodyIdleTime({ raw }: FastifyRequest): void {
  raw.setTimeout(RAW_BODY_IDLE_MS, () => raw.destroy())
  raw.once('end', () => raw.setTimeout(0))
}

/** Replaces Fastify's body parsers in `scope`. The route's config says how its body is read. */
export function registerBodyParsers(
  scope: FastifyInstance,
  host: Host,
  timeoutMs = JSON_BODY_TIMEOUT_MS,
): void {
  const invalidBody = (message: string) => new ApiError(getGeneralCode(host), message)

  function parseText(body: Buffer): unknown {
    if (!isUtf8(body)) throw invalidBody('body must be valid JSON in UTF-8')
    const value = parseJson(body.toString('utf8').replace(/^\uFEFF/, ''))
    const problem = findJsonProblem(value)
    if (problem !== null) throw invalidBody(problem)
    return value
  }

  function parseJson(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch {
      throw invalidBody('body must be valid JSON')
    }
  }

  function assertNotEncoded({ headers }: FastifyRequest): void {
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding.toLowerCase() !== 'identity')
      throw invalidBody('body must be sent without Content-Encoding: compressed bodies are not supported')
  }

  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    assertNotEncoded(request)
    const { rawBody, bodyLimit, hasBody } = request.routeOptions.config
    if (rawBody) {
      limitRawBodyIdleTime(request)
      return undefined
    }
    const limit = bodyLimit ?? LIMITS.jsonBodyBytes
    const code = host === 'edge' && bodyLimit !== undefined ? 'payload_too_large' : getGeneralCode(host)
    const tooLarge = () => new ApiError(code, `body must be at most ${limit} bytes`)
    const signal = request.openRequest?.signal
    const body = await readBody(payload, { bytes: limit, ms: timeoutMs, tooLarge, signal })
    if (body.length === 0 && !hasBody) return undefined
    if (!isJson(request)) throw invalidBody('body must be JSON, sent with Content-Type: application/json')
    return parseText(body)
  })
}
