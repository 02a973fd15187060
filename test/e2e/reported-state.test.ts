// What an agent reports over its tunnel is readable over HTTP: at once, while the box is suspended, and after a restart.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { startReportingAgent } from '../support/reporting-agent.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

const vitals = {
  cpu_pct: 12.5,
  mem_pct: 40,
  disk_pct: null,
  idle_for_sec: 7,
  listeners_count: 1,
  agent_version: '1.2.3',
  coding_agents: { claude: 'ready', codex: 'not_signed_in', opencode: 'not_installed', pi: 'ready' },
}
const machine = {
  os: 'Debian 13\u001b[31m',
  kernel: '6.12',
  arch: 'x64',
  cpuModel: 'CPU',
  cpuCount: 0.5,
  memoryBytes: 2 ** 30,
  diskBytes: null,
}

t.test('vitals, machine, ports and processes of a box', async (t) => {
  const dataDir = createTempDir(t, 'reported')
  const infra = new FakeInfrastructure()
  const coordinator = await startTestCoordinator(t, { dataDir, infra })
  const { url, api, waitForState } = coordinator
  const { id } = (await api('GET', '/boxes')).json.boxes[0]
  await waitForState(id, 'running')
  t.match((await api('GET', `/boxes/${id}`)).json, { vitals: null, machine: null })

  const token = infra.machines.get(id)?.token ?? ''
  const agent = await startReportingAgent(t, { boxId: id, token }, url)
  const at = Date.now() - 60_000
  const delta = {
    added: [[7, 1, at - 1000, 'box', 'node', 'node server.js']],
    removed: [],
    usage: [[7, 125, 2048]],
    ports: [[3000, 7, 'node']],
    total: 1,
  }
  const report = (seq: number, body: object) => ({ type: 'report', epoch: 'e', seq, report: body })
  const snapshot = { type: 'processes.snapshot', at, previousAt: null, delta: JSON.stringify(delta) }
  agent.send([
    { type: 'heartbeat', at, vitals },
    { type: 'listeners', at, ports: '[[3000,7,"node"]]' },
    report(1, { type: 'machine', machine }),
    report(2, snapshot),
  ])
  await waitUntil('the reports are acknowledged', () => agent.lastAck()?.seq === 2)

  const ports = [{ port: 3000, process: 'node', pid: 7 }]
  t.match((await api('GET', `/boxes/${id}/port-shares`)).json.listening, { ports })
  async function checkStored({ api }: Pick<typeof coordinator, 'api'>): Promise<void> {
    t.match((await api('GET', `/boxes/${id}`)).json, {
      vitals,
      machine: { ...machine, os: 'Debian 13\ufffd[31m' },
    })
    for (const time of [at / 1000, (at + 300_000) / 1000, new Date(at - 300_000).toISOString()]) {
      const { status, json } = await api('GET', `/boxes/${id}/procs-at?t=${time}`)
      t.equal(status, 200)
      t.strictSame(json, {
        v: 1,
        at: new Date(at).toISOString(),
        procs: [
          {
            pid: 7,
            ppid: 1,
            user: 'box',
            name: 'node',
            command: 'node server.js',
            cpuPct: 12.5,
            memBytes: 2048 * 1024,
            startedAt: new Date(at - 1000).toISOString(),
          },
        ],
        ports,
        total: 1,
      })
    }
  }
  await checkStored(coordinator)

  for (const query of [
    '',
    '?t=',
    '?t=now',
    '?t=-1',
    '?t=1e9',
    '?t=2026-01-31',
    '?t=2026-13-31T00:00Z',
    '?t=1&t=2',
    '?t=%00',
  ])
    t.match(
      await api('GET', `/boxes/${id}/procs-at${query}`),
      { status: 400, json: { error: 'bad_request', message: /^t / } },
      query,
    )
  t.match(await api('GET', `/boxes/${id}/procs-at?t=1000`), {
    status: 404,
    json: { error: 'not_found', message: /The nearest: / },
  })
  for (const [limits, expected] of [
    [{ access: { boxes: 'read' as const } }, 200],
    [{ access: { boxes: 'none' as const } }, 403],
    [{ boxIds: [id] }, 200],
    [{ boxIds: [crypto.randomUUID()] }, 404],
  ] as const) {
    const key = await createLimitedKey(coordinator, limits as Parameters<typeof createLimitedKey>[1])
    t.equal((await api('GET', `/boxes/${id}/procs-at?t=${at / 1000}`, undefined, { key })).status, expected)
  }

  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  await checkStored(coordinator)
  t.equal((await api('GET', `/boxes/${id}/port-shares`)).json.listening, null)

  await coordinator.close()
  const restarted = await startTestCoordinator(t, { dataDir, infra })
  await checkStored(restarted)
  t.equal((await restarted.api('GET', `/boxes/${id}/port-shares`)).json.listening, null)
})
