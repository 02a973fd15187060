// Invalid reports from an untrusted agent are skipped and do not block the reports after them.
import t from 'tap'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { startReportingAgent } from '../support/reporting-agent.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('skips invalid reports and applies the next valid one', async (t) => {
  const { url, api, infra, instance: coordinator, waitForState: untilState } = await startTestCoordinator(t)
  const { id } = (await api('GET', '/boxes')).json.boxes[0]
  await untilState(id, 'running')
  const commandId = newId('process')
  const startedAt = 1_700_000_000_000
  const started = {
    type: 'command.started',
    commandId,
    claimsToken: 'x',
    command: 'x',
    commandTruncated: false,
    cwd: '~',
  }
  const output = { type: 'command.output', commandId, stream: 'stdout', offset: 0, data: 'eA==' }
  const finished = {
    type: 'command.finished',
    commandId,
    status: 'exited',
    exitCode: 0,
    signal: null,
    finishedAt: null,
  }
  const sizes = { stdoutBytes: 0, stderrBytes: 0 }
  const invalid = [
    { ...started, pid: 1, startedAt },
    { ...started, pid: -1, startedAt },
    { ...started, pid: 1, startedAt: 9e15 },
    { ...started, pid: 1, startedAt, command: 'x'.repeat(8193) },
    { ...started, pid: 1, startedAt, claimsToken: 'x'.repeat(5000) },
    { ...started, pid: 1, startedAt, commandId: "p_'; drop table commands; --" },
    { ...output, offset: -1 },
    { ...output, offset: 2 ** 60 },
    { ...output, offset: 1.5 },
    { ...output, data: 'A'.repeat(200_000) },
    { ...output, data: '\0\ud800 not base64' },
    { ...output, stream: 'stdin' },
    output,
    { ...finished, ...sizes },
    { ...finished, ...sizes, exitCode: 1e12 },
    { ...finished, ...sizes, stdoutBytes: -1 },
    { ...finished, ...sizes, signal: 'x\0' },
    { ...finished, ...sizes, status: 'running' },
    { ...finished, ...sizes, finishedAt: -1 },
    { type: 'command.finished' },
    { type: 'command.__proto__' },
  ]
  const last = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'last-boot', agentVersion: 'v' }
  const token = infra.machines.get(id)?.token ?? ''
  const agent = await startReportingAgent(t, { boxId: id, token }, url)
  agent.send(
    [...invalid, last].map((report, index) => ({ type: 'report', epoch: 'e', seq: index + 1, report })),
  )
  await waitUntil('all reports are acknowledged', () => agent.lastAck()?.seq === invalid.length + 1)
  t.same((await api('GET', `/boxes/${id}/commands`)).json, { commands: [], nextBefore: null })
  const { db, agentConnections } = coordinator.context
  t.match(await db.selectFrom('boxes').select('boot_id').execute(), [{ boot_id: 'last-boot' }])
  t.same(await db.selectFrom('command_output').select('size').execute(), [])
  t.ok(agentConnections.current(id), 'the connection stays open')
})
