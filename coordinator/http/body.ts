// Request bodies: JSON objects within a cap, or bytes that only the route itself touches.
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { generalCode, type Host } from './errors.ts'

/** A body that takes longer than this is not being sent in earnest. */
const JSON_BODY_MS = 60_000
/** Of a body over the cap this much is read and dropped: a client that is cut off while it sends never sees the answer. */
const DISCARD_BYTES = 16 * 1024 * 1024
/** A raw body that brings no byte for this long has no sender any more. */
const RAW_IDLE_MS = 120_000

/** Whole, or `tooLarge` once it has ended or DISCARD_BYTES have come. Throws request_timeout after `ms`. */
function readWhole(body: Readable, limit: number, ms: number, tooLarge: () => ApiError): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    const settle = (error: unknown) => {
      clearTimeout(timer)
      body.off('data', onData).off('end', onEnd).off('error', settle)
      if (error) reject(error)
      else resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size))
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else chunks = []
      if (size > limit + DISCARD_BYTES) settle(tooLarge())
    }
    const onEnd = () => settle(size > limit ? tooLarge() : null)
    const timer = setTimeout(() => settle(new ApiError('request_timeout')), ms)
    body.on('data', onData).once('end', onEnd).once('error', settle)
  })
}

const isJson = (request: FastifyRequest) =>
  /^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')

function guardRawBody({ raw }: FastifyRequest): void {
  raw.setTimeout(RAW_IDLE_MS, () => raw.destroy())
  raw.once('end', () => raw.setTimeout(0))
}

/** Makes `scope` read bodies as the host's rules say. Routes say what they want in their config. */
export function readBodies(scope: FastifyInstance, host: Host): void {
  const parseJson = scope.getDefaultJsonParser('error', 'error')
  const notJson = (message: string) => new ApiError(generalCode(host), message)

  async function parseText(request: FastifyRequest, body: Buffer): Promise<unknown> {
    if (!isUtf8(body)) throw notJson('The body is not JSON: it is not valid UTF-8.')
    return new Promise((resolve, reject) => {
      parseJson(request, body.toString('utf8'), (error, value) => {
        if (error) reject(notJson('The body is not JSON.'))
        else resolve(value)
      })
    })
  }

  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const { rawBody, bodyLimit, hasBody } = request.routeOptions.config
    if (rawBody) {
      guardRawBody(request)
      return undefined
    }
    const limit = bodyLimit ?? LIMITS.jsonBodyBytes
    const code = host === 'edge' && bodyLimit !== undefined ? 'payload_too_large' : generalCode(host)
    const tooLarge = () => new ApiError(code, `The body is larger than ${limit} bytes.`)
    const body = await readWhole(payload, limit, JSON_BODY_MS, tooLarge)
    if (body.length === 0 && !hasBody) return undefined
    if (!isJson(request)) throw notJson('The body must be JSON: send Content-Type: application/json.')
    return parseText(request, body)
  })
}
