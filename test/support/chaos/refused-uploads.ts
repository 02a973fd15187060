// Uploads large bodies that the box refuses. Each upload must get its response, also over connections that are reused.
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { DEADLINE_MS } from '../wait-until.ts'
import type { ChaosSetup } from './chaos-round.ts'

const UPLOADS = 12
/** More than the buffers of the sockets between client, coordinator and agent can hold. */
const BODY = Buffer.alloc(16 * 1024 * 1024)

export async function checkRefusedUploads(t: Test, { coordinator, box }: ChaosSetup): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 })
  /** The status of the response. Rejects when the connection is idle for DEADLINE_MS. */
  const upload = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(`${coordinator.url}/v1/box/${box.hostname}/upload?path=/proc/missing/file`, {
        method: 'PUT',
        agent,
        headers: { ...coordinator.authHeaders(), 'content-length': BODY.length },
        timeout: DEADLINE_MS,
      })
      sent.once('timeout', () => sent.destroy(new Error(`no response within ${DEADLINE_MS} ms`)))
      sent.once('error', reject)
      sent.once('response', (response) => {
        text(response).then(() => resolve(response.statusCode), reject)
      })
      sent.end(BODY)
    })
  const statuses = await Promise.all(Array.from({ length: UPLOADS }, upload)).finally(() => agent.destroy())
  t.same(statuses, Array(UPLOADS).fill(404), 'every refused upload gets its response')
}
