// Why boxes do not reach their state, in the dashboard.
import t from 'tap'
import { describeLog, describeProblem, listChanging } from '../../../dashboard/data/state-problems.ts'
import type { Box, BoxDetail } from '../../../shared/api/boxes.ts'

const createBox = (id: string, fields: Partial<Box> = {}) =>
  ({ id, kind: 'managed', region: 'us-west-2', observedState: 'bootstrapping', ...fields }) as Box

t.test('the boxes that have been changing for the longest time, at most 10', async (t) => {
  const boxes = Array.from({ length: 12 }, (_, index) =>
    createBox(`box-${index}`, { updatedAt: `2026-01-01T00:00:${59 - index}.000Z` }),
  )
  const running = createBox('running', { observedState: 'running', updatedAt: '2025-01-01T00:00:00.000Z' })
  const ids = listChanging(new Map([running, ...boxes].map((box) => [box.id, box])))
  t.equal(ids.length, 10)
  t.same(ids.slice(0, 2), ['box-11', 'box-10'])
})

t.test('the failure of the last attempt', async (t) => {
  const describe = (observed: Box['observedState'], job: Partial<BoxDetail['job']> | null) =>
    describeProblem({ state: { observed }, job, events: [{ reason: 'no image' }] } as BoxDetail)
  t.equal(describe('bootstrapping', { attempt: 0, lastError: null }), null)
  t.equal(
    describe('bootstrapping', { attempt: 4, lastError: 'No agent.' }),
    'Attempt 4 has failed: No agent.',
  )
  t.equal(describe('provision_failed', null), 'no image')
  t.equal(describe('degraded', null), null)
})

t.test('what to check', async (t) => {
  t.match(describeLog(createBox('b')), /the log of the agent: boxes\/b\/log in/)
  t.match(describeLog(createBox('b', { region: 'us-east-1' })), /: regions\/us-east-1\/boxes\/b\/log in/)
  t.match(describeLog(createBox('b', { kind: 'machine' })), /^Check that the machine runs/)
  const isolation = { level: 'container' } as Box['isolation']
  t.notMatch(describeLog(createBox('b', { isolation })), /agent/)
})
