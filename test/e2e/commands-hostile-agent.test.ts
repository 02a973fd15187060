// A box's reports on commands are a stranger's word: nonsense among them changes nothing and stops nothing.
import { PassThrough } from 'node:stream'
import t from 'tap'
import { newId } from '../../shared/ids.ts'
import { testCoordinator } from '../support/coordinator.ts'
import { startTestAgent, until } from '../support/tunnel.ts'

t.test('nonsense is passed over, and what comes behind it counts', async (t) => {
  const { url, api, world, coordinator, until: untilState } = await testCoordinator(t)
  const { id } = (await api('GET', '/boxes')).json.boxes[0]
  await untilState(id, 'running')
  const commandId = newId('process')
  const startedAt = 1_700_000_000_000
  const begun = {
    type: 'command.started',
    commandId,
    receipt: 'x',
    command: 'x',
    commandTruncated: false,
    cwd: '~',
  }
  const out = { type: 'command.output', commandId, stream: 'stdout', offset: 0, data: 'eA==' }
  const end = {
    type: 'command.finished',
    commandId,
    status: 'exited',
    exitCode: 0,
    signal: null,
    finishedAt: null,
  }
  const sizes = { stdoutBytes: 0, stderrBytes: 0 }
  const nonsense = [
    { ...begun, pid: 1, startedAt },
    { ...begun, pid: -1, startedAt },
    { ...begun, pid: 1, startedAt: 9e15 },
    { ...begun, pid: 1, startedAt, command: 'x'.repeat(8193) },
    { ...begun, pid: 1, startedAt, receipt: 'x'.repeat(5000) },
    { ...begun, pid: 1, startedAt, commandId: "p_'; drop table commands; --" },
    { ...out, offset: -1 },
    { ...out, offset: 2 ** 60 },
    { ...out, offset: 1.5 },
    { ...out, data: 'A'.repeat(200_000) },
    { ...out, data: '\0\ud800 not base64' },
    { ...out, stream: 'stdin' },
    out,
    { ...end, ...sizes },
    { ...end, ...sizes, exitCode: 1e12 },
    { ...end, ...sizes, stdoutBytes: -1 },
    { ...end, ...sizes, signal: 'x\0' },
    { ...end, ...sizes, status: 'running' },
    { ...end, ...sizes, finishedAt: -1 },
    { type: 'command.finished' },
    { type: 'command.__proto__' },
  ]
  const last = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'after it all', agentVersion: 'v' }
  const reports = new PassThrough()
  let acknowledged = 0
  const token = world.machines.get(id)?.token ?? ''
  const agent = await startTestAgent({ boxId: id, token }, url, (app) => {
    app.get('/reports', (_request, reply) => reply.send(reports))
    app.post<{ Body: { seq: number } }>('/reports/ack', async (request, reply) => {
      acknowledged = request.body.seq
      return reply.status(204).send()
    })
  })
  t.teardown(() => agent.close())
  for (const [index, report] of [...nonsense, last].entries())
    reports.write(`${JSON.stringify({ type: 'report', epoch: 'e', seq: index + 1, report })}\n`)
  await until('all of it is acknowledged', () => acknowledged === nonsense.length + 1)
  t.same((await api('GET', `/boxes/${id}/commands`)).json, { commands: [], nextBefore: null })
  const { db, hub } = coordinator.context
  t.match(await db.selectFrom('boxes').select('boot_id').execute(), [{ boot_id: 'after it all' }])
  t.same(await db.selectFrom('command_output').select('size').execute(), [])
  t.ok(hub.current(id), 'its connection is not ended for it')
})
