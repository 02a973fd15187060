// Reads a part of a file, and recognizes images.
import type { Box } from '../../client/boxes/box.ts'
import type { Boxwood } from '../../client/boxwood.ts'
import { InvalidRequestError } from '../../client/http/errors.ts'
import type { OpenResponse } from '../../client/http/transport.ts'
import type { Call } from '../context.ts'

/** More than an answer has. */
const PART_BYTES = 64 * 1024
const IMAGE_BYTES = 1024 * 1024

export type Part = {
  bytes: Buffer
  /** Of the whole file; null: not known, such as in /proc. */
  size: number | null
  /** The whole file in base64; null: it is too large. */
  readImage(): Promise<string | null>
}

/** An offset after the end is an empty part. */
export async function readPart(
  box: Box,
  { routes }: Boxwood,
  path: string,
  offset: number,
  { signal }: Call,
): Promise<Part> {
  const download = (range: Record<string, string>) =>
    routes.files.download(box.id, { path }, { signal, headers: range })
  const open = async (): Promise<OpenResponse | null> => {
    try {
      return await download({ range: `bytes=${offset}-${offset + PART_BYTES - 1}` })
    } catch (error) {
      if (!(error instanceof InvalidRequestError && error.status === 416)) throw error
      // An empty file, or one whose size is not known.
      return offset === 0 ? download({}) : null
    }
  }
  const response = await open()
  if (response === null) return { bytes: Buffer.alloc(0), size: null, readImage: async () => null }
  const bytes = await readAtMost(response, PART_BYTES)
  const size = findSize(response)
  return {
    bytes,
    size,
    async readImage() {
      if (size !== null && size > IMAGE_BYTES) return null
      const whole = await readAtMost(await download({}), IMAGE_BYTES + 1)
      return whole.length > IMAGE_BYTES ? null : whole.toString('base64')
    },
  }
}

function findSize({ headers }: OpenResponse): number | null {
  const total = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? headers.get('content-length')
  return total === null ? null : Number(total)
}

async function readAtMost({ body, cancel }: OpenResponse, maxBytes: number): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0)
  const parts: Uint8Array[] = []
  let length = 0
  for await (const bytes of body) {
    parts.push(bytes)
    length += bytes.length
    if (length >= maxBytes) break
  }
  cancel()
  return Buffer.concat(parts).subarray(0, maxBytes)
}

/** The first bytes of the formats that models read. */
const IMAGES: readonly [type: string, pattern: RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF.{4}WEBP/s],
]

export const findImageType = (bytes: Buffer): string | null =>
  IMAGES.find(([, pattern]) => pattern.test(bytes.subarray(0, 16).toString('latin1')))?.[0] ?? null
