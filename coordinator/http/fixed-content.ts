// Sends content that does not change while the coordinator runs. The content is compressed once: no credential is needed for it,
// so that each request must cost little.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Both forms are kept: the buffers are shared by all responses, of which clients may leave many unread. */
type Content = { bytes: Buffer; gzipped: Buffer; etag: string }

/**
 * Returns a handler for GET and HEAD that responds with 304 when the client has the content.
 * @param load called by the first request, and again after it has failed
 */
export function createContentHandler(type: string, load: () => Promise<string | Buffer>) {
  let content: Promise<Content> | undefined
  const getContent = () => {
    content ??= compress(load).catch((error: unknown) => {
      content = undefined
      throw error
    })
    return content
  }
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { bytes, gzipped, etag } = await getContent()
    reply.headers({ etag, vary: 'accept-encoding', 'cache-control': 'public, max-age=0' })
    const known = request.headers['if-none-match']?.split(',').map((value) => value.trim())
    if (known?.includes(etag)) return reply.code(304).send()
    reply.type(type)
    const encoding = negotiate(request.headers['accept-encoding'] ?? '', ['gzip', 'identity'])
    if (encoding === 'gzip') return reply.header('content-encoding', 'gzip').send(gzipped)
    return reply.send(bytes)
  }
}

async function compress(load: () => Promise<string | Buffer>): Promise<Content> {
  const bytes = Buffer.from(await load())
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  // A weak ETag: both encodings have it.
  return { bytes, gzipped: await promisify(gzip)(bytes, { level: 9 }), etag: `W/"${digest}"` }
}
