// Text that a box sends and the coordinator stores has no control characters. Postgres stores no NUL byte.
import t from 'tap'
import { durableReportSchema, reportLineSchema } from '../../shared/api/reports.ts'

const HOSTILE = 'a\0\u001b[2J'
const REPLACED = 'a\uFFFD\uFFFD[2J'

t.test('the start of an agent', async (t) => {
  const text = { instanceId: HOSTILE, bootId: HOSTILE, agentVersion: HOSTILE }
  t.match(durableReportSchema.parse({ type: 'agent.started', at: 0, ...text }), {
    instanceId: REPLACED,
    bootId: REPLACED,
    agentVersion: REPLACED,
  })
})

t.test('the epoch of a report', async (t) => {
  const line = { type: 'report', epoch: HOSTILE, seq: 1, report: { type: 'agent.started' } }
  t.match(reportLineSchema.parse(line), { epoch: REPLACED })
})
