// Thousands of clients open a stream and disconnect: coordinator and agent leak neither memory, descriptors nor slots.

import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { findAgentPid, readResidentMiB } from '../support/find-agent-process.ts'
import { measureHeapBytes } from '../support/heap.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const CLIENTS = 2500
/** By then, the heaps have reached a stable size: V8 grows a heap before it collects all garbage. */
const WARM_UP_CLIENTS = 2500
const CONCURRENCY = 32
const MiB = 1024 * 1024
/** A leak of 1 KiB per client exceeds this. */
const MAX_HEAP_GROWTH_BYTES = 2 * MiB
/** Higher, because the memory of another process is only known including its garbage. */
const MAX_AGENT_GROWTH_MIB = 6
/** A leak makes the agent grow in every round, and garbage only in some. */
const MAX_ROUNDS = 4

const countDescriptors = (pid: number | 'self') => readdirSync(`/proc/${pid}/fd`).length

t.test('thousands of clients that disconnect leave nothing behind', async (t) => {
  const {
    boxRequest,
    box,
    url,
    key,
    instance: coordinator,
  } = await startCoordinatorWithBox(t, {
    env: limitsEnv({ ...HIGH_EDGE_LIMITS, edgeStreams: 1000 }),
  })
  const { limiter } = coordinator.context.edge
  const command = { command: 'echo here; sleep 300', detached: true }
  const { processId } = (await boxRequest('POST', '/exec', command)).json
  const agentPid = findAgentPid(box.id)
  if (agentPid === undefined) throw new Error('the box has no agent')
  const { port } = new URL(url)
  const requestHead = [
    `GET /v1/box/${box.hostname}/exec/${processId}/stream HTTP/1.1`,
    'host: coordinator',
    `authorization: Bearer ${key}`,
  ].join('\r\n')

  let opened = 0
  let responded = 0
  /** Disconnects after the first bytes of the response; every fifth client directly after its request. */
  const openAndDisconnect = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port: Number(port), host: '127.0.0.1' })
      socket.on('error', () => undefined)
      socket.once('close', () => resolve())
      socket.once('data', (bytes) => {
        if (bytes.toString('latin1').startsWith('HTTP/1.1 200 ')) responded += 1
        socket.destroy()
      })
      socket.write(`${requestHead}\r\n\r\n`, () => {
        if (index % 5 === 0) socket.destroy()
      })
    })
  /** Runs clients until `total` have been opened since the start. */
  const runClients = async (total: number) => {
    const runWorker = async () => {
      while (opened < total) await openAndDisconnect(opened++)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, runWorker))
    await waitUntil('every slot is released', () => limiter.acquiredCount() === 0)
  }

  await runClients(WARM_UP_CLIENTS)
  const heapBytesBefore = await measureHeapBytes()
  const descriptorsBefore = { self: countDescriptors('self'), agent: countDescriptors(agentPid) }
  const agentGrowths: number[] = []
  for (let total = WARM_UP_CLIENTS + CLIENTS; agentGrowths.length < MAX_ROUNDS; total += CLIENTS) {
    const agentMiB = readResidentMiB(agentPid)
    await runClients(total)
    const growth = readResidentMiB(agentPid) - agentMiB
    agentGrowths.push(growth)
    if (growth < MAX_AGENT_GROWTH_MIB) break
  }
  t.equal(limiter.acquiredCount(), 0)
  await waitUntil(
    'the coordinator has closed all descriptors',
    () => countDescriptors('self') <= descriptorsBefore.self,
  )
  await waitUntil(
    'the agent has closed all descriptors',
    () => countDescriptors(agentPid) <= descriptorsBefore.agent,
  )
  const heapGrowth = (await measureHeapBytes()) - heapBytesBefore
  t.ok(heapGrowth < MAX_HEAP_GROWTH_BYTES, `the coordinator's heap grew by ${heapGrowth} bytes`)
  t.ok(Math.min(...agentGrowths) < MAX_AGENT_GROWTH_MIB, `the agent grew by ${agentGrowths} MiB per round`)
  t.equal(responded, Math.floor(opened * 0.8), 'every client that waited got a response')
})
