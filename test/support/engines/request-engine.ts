// Requests to the HTTP API of an engine.
import { request } from 'node:http'

export type EngineResponse = { status: number; text: string }

/** Rejects when the engine does not answer. */
export function requestEngine(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<EngineResponse> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request({ socketPath, method, path, headers, agent: false }, async (response) => {
      try {
        const text = Buffer.concat(await response.toArray()).toString('utf8')
        resolve({ status: response.statusCode ?? 0, text })
      } catch (error) {
        reject(error)
      }
    })
    sent.once('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Whether the engine answers requests. */
export async function answers(socketPath: string): Promise<boolean> {
  try {
    return (await requestEngine(socketPath, 'GET', '/_ping')).status === 200
  } catch {
    return false
  }
}
