// Several followers of commands: the four of a key and the fifth, and one that stalls.
import t, { type Test } from 'tap'
import { agentPid, residentMiB } from '../support/agent-pid.ts'
import { type CoordinatorProcess, startCoordinatorProcess, waitUntil } from '../support/coordinator-process.ts'
import { openStream, type StreamReader } from './edge-stream-reader.ts'

/** A coordinator of its own with its first box; both can be measured. */
async function measured(t: Test, env: Record<string, string> = {}) {
  const coordinator: CoordinatorProcess = await startCoordinatorProcess(t, env)
  const { hostname, id } = await coordinator.waitForFirstBox()
  const agent = agentPid(id)
  if (agent === undefined) throw new Error('the box has no agent')
  const start = async (command: string): Promise<string> =>
    (await coordinator.exec(hostname, command, { detached: true })).processId
  return {
    ...coordinator,
    hostname,
    pids: { coordinator: coordinator.pid, agent },
    start,
    open: (processId: string, headers = {}) =>
      openStream(`${coordinator.url}/v1/box/${hostname}/exec/${processId}/stream`, {
        ...coordinator.authHeaders(),
        ...headers,
      }),
    status: (processId: string, method = 'GET') =>
      coordinator.sendJson(method, `/v1/box/${hostname}/exec/${processId}`),
  }
}

const attached = (reader: StreamReader) =>
  waitUntil('it is attached', async () => reader.events[0]?.event === 'attached')

t.test('four streams of a key, and the fifth', async (t) => {
  const { start, open, status } = await measured(t)
  const id = await start('sleep 68')
  const four = await Promise.all(Array.from({ length: 4 }, () => open(id)))
  await Promise.all(four.map(attached))
  await t.rejects(open(id), { message: /^429: .*rate_limited/ })
  t.match(await status(id), { ok: true, running: true }, 'other requests go on')
  four[0]?.leave()
  const again = await waitUntil('its slot is free', () => open(id).catch(() => undefined))
  for (const reader of [...four.slice(1), again]) reader.leave()
  const all = await waitUntil('all are free', () =>
    Promise.all(Array.from({ length: 4 }, () => open(id))).catch(() => undefined),
  )
  await status(id, 'DELETE')
  for (const reader of all)
    t.match((await reader.ended).at(-1), { event: 'exit', data: { status: 'killed' } })
})

t.test('a follower that stalls costs nothing but its own stream', async (t) => {
  const { start, open, status, pids, exec, hostname } = await measured(t)
  const id = await start('mkfifo go; cat go; yes 0123456789 | head -c 50000000')
  const stalled = await open(id)
  await attached(stalled)
  const other = await open(id)
  stalled.response.socket.pause()
  const before = { coordinator: residentMiB(pids.coordinator), agent: residentMiB(pids.agent) }
  await exec(hostname, 'echo > go')
  const events = await other.ended
  t.match(events.at(-1), { event: 'exit', id: '50000001:0', data: { exitCode: 0 } })
  t.match(await status(id), { running: false, exitCode: 0 }, 'the command did not wait for it')
  t.ok(
    stalled.events.length < events.length / 2,
    `it has ${stalled.events.length} of ${events.length} events`,
  )
  for (const name of ['coordinator', 'agent'] as const) {
    const grown = residentMiB(pids[name]) - before[name]
    t.ok(grown < 64, `the ${name} grew by ${grown.toFixed(1)} MiB`)
  }
  stalled.response.socket.resume()
  t.match((await stalled.ended).at(-1), { event: 'exit', id: '50000001:0' }, 'and it goes on where it was')
})
