// Worker thread that parses large responses of agents, so that they do not block the main thread.
import { parentPort } from 'node:worker_threads'
import type { AgentResponseType } from './agent-response-types.ts'
import { InvalidResponseError, type ParsedResponse, parseResponse } from './parse-response.ts'

export type ParseRequest = { id: number; type: AgentResponseType; bytes: Uint8Array }
export type ParseReply = { id: number } & (
  | { result: Omit<ParsedResponse, 'json'>; json: Uint8Array }
  | { problem: string }
)

parentPort?.on('message', ({ id, type, bytes }: ParseRequest) => {
  try {
    const { json, ...result } = parseResponse(type, Buffer.from(bytes.buffer).toString('utf8'))
    // A copy of its own, which can be transferred.
    const encoded = new TextEncoder().encode(json)
    reply({ id, result, json: encoded }, [encoded.buffer])
  } catch (error) {
    if (!(error instanceof InvalidResponseError)) throw error
    reply({ id, problem: error.message })
  }
})

function reply(message: ParseReply, transferred: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transferred)
}
