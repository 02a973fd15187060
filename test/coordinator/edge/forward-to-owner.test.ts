// Forwarding to the coordinator with the tunnel of a box, when that one does not listen any more.
import { once } from 'node:events'
import { Agent, createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createForwardExchange } from '../../../coordinator/edge/forward-to-owner.ts'
import type { ApiError } from '../../../shared/errors.ts'

const BODY = Buffer.alloc(300_000, 'body ')

async function listen(t: Test, listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function findClosedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** The tunnel is at `killed`, which does not listen, and then at `next`. */
async function setUp(t: Test, next: 'alive' | undefined) {
  const bodies: number[] = []
  const alive = await listen(t, async (request, response) => {
    bodies.push(Buffer.concat(await request.toArray()).length)
    response.end('forwarded')
  })
  const ports: Record<string, number> = { alive, killed: await findClosedPort() }
  const agent = new Agent()
  let reads = 0
  const forward = createForwardExchange({
    agentConnections: {
      owner() {
        reads += 1
        const replicaId = reads < 3 ? 'killed' : next
        return replicaId === undefined ? undefined : { replicaId }
      },
      readOwner: async () => t.fail('the database is not read') as never,
    },
    peers: {
      findAddress: async (replicaId) => ({
        replicaId,
        agent,
        isReachable: true,
        watch: () => undefined,
        url: new URL(`http://127.0.0.1:${ports[replicaId]}`),
      }),
      sign: () => ['x-test', 'signed'],
    },
  })
  const front = await listen(t, (request, response) => {
    forward({ request, response }, 'box', { clientAddress: null }).then(
      async (isForwarded) => {
        if (isForwarded) return
        bodies.push(Buffer.concat(await request.toArray()).length)
        response.end('served here')
      },
      (error: ApiError) => response.writeHead(error.status).end(),
    )
  })
  const send = async () => {
    const response = await fetch(`http://127.0.0.1:${front}/`, { method: 'POST', body: BODY })
    return response.text()
  }
  return { send, bodies }
}

t.test('the request waits for the next tunnel, and its body is complete', async (t) => {
  const { send, bodies } = await setUp(t, 'alive')
  t.equal(await send(), 'forwarded')
  t.same(bodies, [BODY.length])
})

t.test('it is served here when the agent connects to this coordinator', async (t) => {
  const { send, bodies } = await setUp(t, undefined)
  t.equal(await send(), 'served here')
  t.same(bodies, [BODY.length])
})
