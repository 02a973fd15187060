// Sends many bytes faster in Node.

const PART = 1024 * 1024
const { undici, bun, deno }: Record<string, string | undefined> =
  (globalThis as { process?: { versions?: Record<string, string> } }).process?.versions ?? {}
/** Browsers send no streams over HTTP/1.1. */
const isNode = undici !== undefined && bun === undefined && deno === undefined

/**
 * fetch() of Node copies bytes before it sends them, and takes five times as long as for a stream of parts of them.
 * @returns null: the bytes are few, or the runtime is another one
 */
export function toParts(bytes: unknown): { stream: ReadableStream<Uint8Array>; length: number } | null {
  if (!isNode || !(bytes instanceof Uint8Array) || bytes.length <= PART) return null
  let offset = 0
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (offset < bytes.length) controller.enqueue(bytes.subarray(offset, offset + PART))
        else controller.close()
        offset += PART
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, length: bytes.length }
}
