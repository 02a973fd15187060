// Ten thousand clients that open a stream through the coordinator and vanish: neither end grows, and no slot stays taken.
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { agentPid, residentMiB } from '../support/agent-pid.ts'
import { heapBytes } from '../support/heap.ts'
import { waitUntil } from '../support/tunnel.ts'
import { edgeBox, UNLIMITED } from './edge-box.ts'

const OPENS = 10_000
/** Until then a heap that nobody hurries to collect has grown to the size it keeps. */
const WARM_UP = 8000
const AT_ONCE = 32
const MiB = 1024 * 1024
/** A leak of 1 KiB for each client would be more. */
const HEAP_GROWTH_BYTES = 8 * MiB
/** The agent is a process of its own, whose memory is known by the page only, garbage and all. */
const AGENT_GROWTH_MIB = 24

const descriptors = (pid: number | 'self') => readdirSync(`/proc/${pid}/fd`).length

t.test('ten thousand clients that vanish', { timeout: 300_000 }, async (t) => {
  const { ask, box, url, key, coordinator } = await edgeBox(t, {
    env: { ...UNLIMITED, BOXWOOD_EDGE_STREAMS: '1000' },
  })
  const { limiter } = coordinator.context.edge
  const { processId } = (await ask('POST', '/exec', { command: 'echo here; sleep 300', detached: true })).json
  const agent = agentPid(box.id)
  if (agent === undefined) throw new Error('the box has no agent')
  const { port } = new URL(url)
  const head = [
    `GET /v1/box/${box.hostname}/exec/${processId}/stream HTTP/1.1`,
    'host: coordinator',
    `authorization: Bearer ${key}`,
  ].join('\r\n')

  let answered = 0
  /** Leaves after the first bytes, or right after asking. */
  const visit = (number: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port: Number(port), host: '127.0.0.1' })
      socket.on('error', () => undefined)
      socket.once('close', () => resolve())
      socket.once('data', (bytes) => {
        if (bytes.toString('latin1').startsWith('HTTP/1.1 200 ')) answered += 1
        socket.destroy()
      })
      socket.write(`${head}\r\n\r\n`, () => {
        if (number % 5 === 0) socket.destroy()
      })
    })
  let opened = 0
  const visits = async (last: number) => {
    const visitor = async () => {
      while (opened < last) await visit(opened++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, visitor))
    await waitUntil('every slot is given back', () => limiter.acquiredCount() === 0)
  }

  await visits(WARM_UP)
  const before = { heap: await heapBytes(), agent: residentMiB(agent) }
  const files = { self: descriptors('self'), agent: descriptors(agent) }
  await visits(WARM_UP + OPENS)
  t.equal(limiter.acquiredCount(), 0)
  await waitUntil('the coordinator holds no descriptor of them', () => descriptors('self') <= files.self)
  await waitUntil('the agent holds no descriptor of them', () => descriptors(agent) <= files.agent)
  const heapGrowth = (await heapBytes()) - before.heap
  const agentGrowth = residentMiB(agent) - before.agent
  t.ok(heapGrowth < HEAP_GROWTH_BYTES, `the coordinator's heap: ${heapGrowth} bytes more`)
  t.ok(agentGrowth < AGENT_GROWTH_MIB, `the agent's memory: ${agentGrowth} MiB more`)
  // All that waited for it: the tunnel held.
  t.equal(answered, Math.floor(opened * 0.8))
})
