// Parses responses of agents: small ones on the main thread, others in a worker thread.
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { countJsonTokens } from '../../shared/bounded-json.ts'
import type { AgentResponseType } from './agent-response-types.ts'
import { InvalidResponseError, type ParsedResponse, parseResponse } from './parse-response.ts'
import type { ParseReply, ParseRequest } from './parse-worker.ts'

export type AgentResponse = Omit<ParsedResponse, 'json'> & {
  /** The validated response as JSON. */
  json: Buffer
}

export type ResponseParser = {
  /** Rejects with InvalidResponseError. @param bytes must not be used afterwards */
  parse(type: AgentResponseType, bytes: Buffer<ArrayBuffer>): Promise<AgentResponse>
  /** Rejects the responses that are being parsed, and later ones that are not small. */
  close(): Promise<void>
}

/** Responses within both bounds take less than a millisecond. */
const INLINE_BYTES = 64 * 1024
const INLINE_TOKENS = 256

/** A response of 13 MiB needs less than 100 MiB. A worker above the limit ends, and the coordinator continues. */
const WORKER_HEAP_MIB = 256

const STOPPING = 'the coordinator is stopping'

type PendingParse = { resolve(response: AgentResponse): void; reject(error: Error): void }

/** The worker starts with the first large response, and keeps the process running only while it parses. */
export function createResponseParser({ workerHeapMiB = WORKER_HEAP_MIB } = {}): ResponseParser {
  let worker: Worker | undefined
  let lastId = 0
  let isClosed = false
  const pending = new Map<number, PendingParse>()

  function startWorker(): Worker {
    const started = new Worker(join(import.meta.dirname, `parse-worker${extname(import.meta.filename)}`), {
      resourceLimits: { maxOldGenerationSizeMb: workerHeapMiB },
    })
    started.on('message', settle)
    started.on('error', () =>
      stop(new InvalidResponseError('A response of an agent needs too much memory to be parsed.')),
    )
    return started
  }

  /** The next large response starts another worker. */
  function stop(error: Error): void {
    worker = undefined
    for (const { reject } of pending.values()) reject(error)
    pending.clear()
  }

  function settle(reply: ParseReply): void {
    const request = pending.get(reply.id)
    pending.delete(reply.id)
    if (pending.size === 0) worker?.unref()
    if ('problem' in reply) request?.reject(new InvalidResponseError(reply.problem))
    else request?.resolve({ ...reply.result, json: Buffer.from(reply.json.buffer) })
  }

  function parseInWorker(type: AgentResponseType, bytes: Uint8Array<ArrayBuffer>): Promise<AgentResponse> {
    return new Promise((resolve, reject) => {
      if (isClosed) throw new Error(STOPPING)
      worker ??= startWorker()
      const id = ++lastId
      pending.set(id, { resolve, reject })
      worker.ref()
      worker.postMessage({ id, type, bytes } satisfies ParseRequest, [bytes.buffer])
    })
  }

  return {
    async parse(type, bytes) {
      if (bytes.length <= INLINE_BYTES) {
        const text = bytes.toString('utf8')
        if (countJsonTokens(text, INLINE_TOKENS) <= INLINE_TOKENS) {
          const { json, ...fields } = parseResponse(type, text)
          return { ...fields, json: Buffer.from(json) }
        }
      }
      // A slice of a pool cannot be transferred.
      const ownsMemory = bytes.length === bytes.buffer.byteLength
      return parseInWorker(type, ownsMemory ? bytes : new Uint8Array(bytes))
    },
    async close() {
      isClosed = true
      await worker?.terminate()
      stop(new Error(STOPPING))
    },
  }
}
