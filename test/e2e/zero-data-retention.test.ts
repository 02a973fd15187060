// Turning zero data retention on over the API erases what is stored, also when the coordinator stops before it has finished.
import t from 'tap'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const SECRET = 's3cret'

/** Runs a command as the edge and the agent do. Returns its id. */
async function runCommand({ instance: { context, owner } }: TestCoordinator, boxId: string) {
  if (owner === null) throw new Error('the coordinator has no owner')
  const command = { boxId, actor: owner, mode: 'sync', respondsAt: 'exit', fromCli: false } as const
  const request = { ...command, command: `echo ${SECRET}`, cwd: `/${SECRET}` }
  const { commandId, claimsToken } = await context.commands.tracker.track(request, async (tracked) => {
    tracked.acceptResponse({ commandId: tracked.record.commandId })
    return tracked.record
  })
  const started = { type: 'command.started' as const, commandId, claimsToken, commandTruncated: false }
  const stream = { stdoutBytes: SECRET.length, stderrBytes: 0, stdout: btoa(SECRET) }
  const exit = { status: 'exited' as const, exitCode: 0, signal: null, finishedAt: context.clock.now() }
  const reports = [
    { ...started, command: request.command, cwd: request.cwd, pid: 7, startedAt: context.clock.now() },
    { type: 'command.finished' as const, commandId, ...stream, ...exit },
  ]
  await context.reports.apply({
    boxId,
    epoch: commandId,
    reports: reports.map((report, index) => ({ seq: index + 1, report })),
  })
  return commandId
}

t.test('erases the stored commands and reports', async (t) => {
  const first = await startTestCoordinator(t)
  const { id: boxId } = (await first.api('GET', '/boxes')).json.boxes[0]
  const id = await runCommand(first, boxId)
  t.match((await first.api('GET', `/boxes/${boxId}/commands/${id}`)).json.command, { outputKept: true })
  const report = { kind: 'exec', boxId, detail: { command: SECRET } }
  t.equal((await first.api('POST', '/audit', report)).status, 201)

  t.comment('the coordinator stops before the schedules run')
  await first.instance.context.scheduler.close()
  const session = await createTestSession(first)
  const body = { zeroDataRetention: true }
  t.match(await first.api('PATCH', '/workspace', body, session), {
    status: 200,
    json: { workspace: { zeroDataRetention: true } },
  })
  t.equal((await first.api('POST', '/audit', report)).status, 201)
  await first.close()

  const { api, ...second } = await startTestCoordinator(t, { dataDir: first.dataDir, infra: first.infra })
  const { db } = second.instance.context
  await waitUntil('the erasure is complete', async () => {
    const schedules = await db.selectFrom('schedules').select('kind').where('kind', '=', 'erase').execute()
    return schedules.length === 0
  })
  const { json } = await api('GET', `/boxes/${boxId}/commands`)
  const blank = { command: null, cwd: null, outputKept: false, status: 'exited', stdoutBytes: SECRET.length }
  t.match(json.commands, [{ id, ...blank }])
  t.match((await api('GET', `/boxes/${boxId}/commands/${id}/output`)).json, { data: '', done: true })
  const { events } = (await api('GET', '/audit?kind=exec')).json
  t.same(
    events.map(({ detail }: { detail: unknown }) => detail),
    [{}, {}],
  )
  const chain = (await api('GET', '/audit/chain')).text
  for (const stored of [chain, JSON.stringify(json), (await api('GET', '/audit?format=csv')).text])
    t.notMatch(stored, SECRET)
})
