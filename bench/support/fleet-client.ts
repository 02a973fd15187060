// Sends requests to the boxes of a fleet over persistent connections.
import { Agent, request as httpRequest } from 'node:http'
import type { Fleet, FleetBox } from '../../test/support/fleet.ts'

export type FleetClient = {
  /** Resolves with the status when the whole response has arrived. */
  send(method: 'GET' | 'POST', box: FleetBox, path: string, body?: object): Promise<number>
  /** Ends all requests. */
  close(): void
}

export function createFleetClient({ url, key }: Fleet): FleetClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })
  const controller = new AbortController()
  const { signal } = controller
  return {
    send: (method, { boxId }, path, body) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        httpRequest(`${url}/v1/box/${boxId}${path}`, { method, agent, headers, signal })
          .once('error', reject)
          .once('response', (response) => {
            response.resume().once('error', reject)
            response.once('end', () => resolve(response.statusCode ?? 0))
          })
          .end(body && JSON.stringify(body))
      }),
    close() {
      controller.abort()
      agent.destroy()
    },
  }
}
