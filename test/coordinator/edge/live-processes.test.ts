// GET /processes on the edge: what the agent responds is validated and bounded.
import t from 'tap'
import {
  LIVE_COMMAND_CHARS,
  type LiveProcess,
  type LiveProcesses,
  MAX_LIVE_PROCESSES,
} from '../../../shared/api/live-processes.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'

const ID = 'p_0123456789abcdef01234567'
const PROCESS: LiveProcess = {
  ...{ pid: 7, ppid: 1, user: 'box', name: 'node', command: 'node a.js', state: 'S', threads: 11 },
  ...{ cpuPct: 12.5, memBytes: 4096, startedAt: '2026-01-01T00:00:00.000Z', processId: ID },
}
const RESPONSE: LiveProcesses = {
  ...{ ok: true, type: 'process.list', at: '2026-01-01T00:00:01.000Z' },
  ...{ cpuPct: 6.3, cpuCount: 2, memUsedBytes: 10, memTotalBytes: null, total: 1, processes: [PROCESS] },
}

t.test('GET /processes', async (t) => {
  let response: unknown = RESPONSE
  const paths: string[] = []
  const box = await startBoxWithFakeAgent(t, async ({ path }) => {
    paths.push(path)
    return { status: 200, body: Buffer.from(JSON.stringify(response)) }
  })
  const get = (query = '') => box.edge(box.box.hostname, 'GET', `/processes${query}`)

  await t.test('responds with the processes of the box', async (t) => {
    t.match(await get(), { status: 200 })
    t.strictSame((await get()).json, RESPONSE)
  })

  await t.test('requests only the processes of a command', async (t) => {
    t.match(await get(`?processId=${ID}`), { status: 200 })
    t.equal(paths.at(-1), `/processes?processId=${ID}`)
    const requests = paths.length
    t.match(await get('?processId=../x'), { status: 400, json: { error: { code: 'invalid_request' } } })
    t.equal(paths.length, requests, 'the agent gets no request')
  })

  await t.test('the longest list is accepted', async (t) => {
    const long = { ...PROCESS, user: '\u0001'.repeat(64), name: '\u0001'.repeat(64) }
    const process = { ...long, command: '\u0001'.repeat(LIVE_COMMAND_CHARS) }
    response = { ...RESPONSE, processes: Array(MAX_LIVE_PROCESSES).fill(process) }
    t.equal((await get()).json.processes.length, MAX_LIVE_PROCESSES)
  })

  for (const [name, invalid] of Object.entries({
    'too many processes': { ...RESPONSE, processes: Array(MAX_LIVE_PROCESSES + 1).fill(PROCESS) },
    'a long command line': {
      ...RESPONSE,
      processes: [{ ...PROCESS, command: 'x'.repeat(LIVE_COMMAND_CHARS + 1) }],
    },
    'a negative usage': { ...RESPONSE, processes: [{ ...PROCESS, cpuPct: -1 }] },
    'an invalid state': { ...RESPONSE, processes: [{ ...PROCESS, state: '\u001b[2J' }] },
    'an invalid time': { ...RESPONSE, at: 'yesterday' },
    'a response of another type': { ok: true, type: 'exec.list', processes: [] },
  }))
    await t.test(`rejects ${name}`, async (t) => {
      response = invalid
      t.match(await get(), { status: 502, json: { error: { code: 'exec_failed' } } })
    })

  await t.test('omits fields that are not in the schema', async (t) => {
    response = { ...RESPONSE, extra: 1, processes: [{ ...PROCESS, environment: 'SECRET=1' }] }
    t.strictSame((await get()).json, RESPONSE)
  })
})
