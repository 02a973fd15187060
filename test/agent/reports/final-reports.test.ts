// The final reports of an agent that stops: with a coordinator that reads them, and without one.
import t, { type Test } from 'tap'
import { deliverFinalReports } from '../../../agent/reports/final-reports.ts'
import { createOpenStreams } from '../../../agent/reports/open-streams.ts'
import { silentLog } from '../../support/tunnel.ts'
import { DEADLINE_MS } from '../../support/wait-until.ts'
import { createDir, drainSpool, openTestSpool } from '../exec/history/support.ts'

async function createDeps(t: Test) {
  const warnings: unknown[] = []
  const exits = Promise.withResolvers<void>()
  const spool = await openTestSpool(t, createDir(t))
  return {
    exits,
    spool,
    warnings,
    deps: {
      spool,
      openStreams: createOpenStreams(),
      waitForExits: () => exits.promise,
      flushRecorders: async () =>
        spool.appendUnsynced({
          type: 'agent.started',
          at: 1,
          instanceId: 'i',
          bootId: 'b',
          agentVersion: 'v',
        }),
      log: { ...silentLog, warn: (warning: unknown) => void warnings.push(warning) },
    },
  }
}

t.test('resolves when the coordinator has acknowledged the reports that follow the exits', async (t) => {
  const { deps, exits, spool, warnings } = await createDeps(t)
  deps.openStreams.add()
  let isDelivered = false
  const delivered = deliverFinalReports(deps).then(() => {
    isDelivered = true
  })
  t.same(await drainSpool(spool), [], 'no report before the exits')
  exits.resolve()
  await spool.waitForReport(AbortSignal.timeout(DEADLINE_MS))
  t.notOk(isDelivered)
  t.equal((await drainSpool(spool)).length, 1)
  await delivered
  t.same(warnings, [])
})

t.test('does not wait for a coordinator that does not read reports', async (t) => {
  const { deps, warnings } = await createDeps(t)
  await deliverFinalReports(deps)
  t.match(warnings, [{ err: { message: 'the coordinator does not read reports' } }])
})

t.test('stops waiting when the coordinator closes the stream', async (t) => {
  const { deps, warnings } = await createDeps(t)
  const onClose = deps.openStreams.add()
  const delivered = deliverFinalReports(deps)
  onClose()
  await delivered
  t.equal(warnings.length, 1)
})
