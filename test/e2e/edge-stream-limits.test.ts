// Several clients follow commands: the limit of four streams per key, and a client that stops reading.
import t, { type Test } from 'tap'
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid, readResidentMiB } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { openStream, type StreamReader } from './edge-stream-reader.ts'

const OUTPUT_BYTES = 150_000_000
/** About half of the output. Includes garbage. */
const MAX_GROWTH_MIB = 80

/** Starts a coordinator process with one box. The memory of coordinator and agent can be measured. */
async function setUp(t: Test) {
  const coordinator: CoordinatorProcess = await startCoordinatorProcess(t)
  const { hostname, id } = await coordinator.waitForFirstBox()
  const agentPid = findAgentPid(id)
  if (agentPid === undefined) throw new Error('the box has no agent')
  const start = async (command: string): Promise<string> =>
    (await coordinator.exec(hostname, command, { detached: true })).processId
  return {
    ...coordinator,
    hostname,
    pids: { coordinator: coordinator.pid, agent: agentPid },
    start,
    open: (processId: string) =>
      openStream(`${coordinator.url}/v1/box/${hostname}/exec/${processId}/stream`, coordinator.authHeaders()),
    getStatus: (processId: string) => coordinator.sendJson('GET', `/v1/box/${hostname}/exec/${processId}`),
    kill: (processId: string) => coordinator.sendJson('DELETE', `/v1/box/${hostname}/exec/${processId}`),
  }
}

const waitUntilAttached = (reader: StreamReader) =>
  waitUntil('the stream is attached', async () => reader.events[0]?.event === 'attached')

t.test('rejects the fifth stream of a key until another one closes', async (t) => {
  const { start, open, getStatus, kill } = await setUp(t)
  const id = await start('sleep 68')
  const readers = await Promise.all(Array.from({ length: 4 }, () => open(id)))
  await Promise.all(readers.map(waitUntilAttached))
  await t.rejects(open(id), { message: /^429: .*rate_limited/ })
  t.match(await getStatus(id), { ok: true, running: true }, 'another request is served')
  readers[0]?.disconnect()
  const next = await waitUntil('its slot is released', () => open(id).catch(() => undefined))
  for (const reader of [...readers.slice(1), next]) reader.disconnect()
  const newReaders = await waitUntil('all slots are released', () =>
    Promise.all(Array.from({ length: 4 }, () => open(id))).catch(() => undefined),
  )
  await kill(id)
  for (const reader of newReaders)
    t.match((await reader.ended).at(-1), { event: 'exit', data: { status: 'killed' } })
})

t.test('a client that stops reading delays only its own stream', async (t) => {
  const { start, open, getStatus, pids, exec, hostname } = await setUp(t)
  const id = await start(`mkfifo go; cat go; yes 0123456789 | head -c ${OUTPUT_BYTES}`)
  const paused = await open(id)
  await waitUntilAttached(paused)
  const reading = await open(id)
  paused.response.socket.pause()
  const before = { coordinator: readResidentMiB(pids.coordinator), agent: readResidentMiB(pids.agent) }
  await exec(hostname, 'echo > go')
  const events = await reading.ended
  t.match(events.at(-1), { event: 'exit', id: `${OUTPUT_BYTES + 1}:0`, data: { exitCode: 0 } })
  t.match(await getStatus(id), { running: false, exitCode: 0 }, 'the command did not wait')
  t.ok(
    paused.events.length < events.length / 2,
    `${paused.events.length} of ${events.length} events have arrived`,
  )
  for (const name of ['coordinator', 'agent'] as const) {
    const growth = readResidentMiB(pids[name]) - before[name]
    t.ok(growth < MAX_GROWTH_MIB, `the ${name} grew by ${growth.toFixed(1)} MiB`)
  }
  paused.response.socket.resume()
  t.match(
    (await paused.ended).at(-1),
    { event: 'exit', id: `${OUTPUT_BYTES + 1}:0` },
    'it gets the complete output',
  )
})
