// Reads the body of an agent's response. Agents are untrusted: the size is bounded.
import type { Readable } from 'node:stream'
import { ApiError } from '../../../shared/errors.ts'

/** The error for an agent that violates the protocol. `problem` is a sentence about the agent. */
export const createAgentProtocolError = (problem: string, cause?: unknown) =>
  new ApiError('exec_failed', `${problem} If this persists, suspend and wake the box to restart its agent.`, {
    cause,
  })

export const createTooLargeError = (limit: number) =>
  createAgentProtocolError(`The response of the agent exceeds ${limit} bytes.`)

/** Reads the whole body. Above `limit` bytes it throws exec_failed and destroys the stream. */
export async function readBody(body: Readable, limit: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer<ArrayBuffer>[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) {
      body.destroy()
      throw createTooLargeError(limit)
    }
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)
}
