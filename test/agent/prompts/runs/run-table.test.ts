// The table of runs: subscribers and waiting readers are notified of each change.
import t from 'tap'
import { createRunRecord } from '../../../../agent/prompts/runs/run-record.ts'
import { RunTable } from '../../../../agent/prompts/runs/run-table.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { createRequest } from './support.ts'

const createRecord = (sequence: number) =>
  createRunRecord(createRequest('normal.sh'), { minutes: 1, startedAt: 1000, sequence })

t.test('lists the runs in the order in which they were added', async (t) => {
  const table = new RunTable(silentLog)
  const records = [createRecord(1), createRecord(2), createRecord(3)]
  for (const record of records) table.add(record, null)
  const [first, second] = records
  table.update(first?.id ?? '', { active: null })
  table.delete(second?.id ?? '')
  t.same(
    table.list().map(({ record }) => record.sequence),
    [1, 3],
  )
})

t.test('an update notifies the subscribers and the readers that wait', async (t) => {
  const table = new RunTable(silentLog)
  const record = createRecord(1)
  table.add(record, null)
  const { state, changes } = table.get(record.id)
  const seen: number[] = []
  const unsubscribe = table.subscribe((run) => seen.push(run.eventCount))
  const waiting = changes.wait(changes.version(), null, [])
  table.update(record.id, { state: { ...state, eventCount: 5 } })
  await waiting
  t.equal(table.get(record.id).state.eventCount, 5)
  unsubscribe()
  table.update(record.id, { state: { ...state, eventCount: 6 } })
  t.same(seen, [5])
})

t.test('a subscriber that throws affects neither the run nor the other subscribers', async (t) => {
  const table = new RunTable(silentLog)
  const record = createRecord(1)
  table.add(record, null)
  const notified: string[] = []
  table.subscribe(() => {
    throw new Error('broken')
  })
  table.subscribe(({ id }) => notified.push(id))
  t.equal(table.publish(record.id).id, record.id)
  t.same(notified, [record.id])
})

t.test('a deleted run is not found, and its late update is ignored', async (t) => {
  const table = new RunTable(silentLog)
  const record = createRecord(1)
  table.add(record, null)
  table.delete(record.id)
  table.subscribe(() => t.fail('no subscriber is notified'))
  table.update(record.id, { active: null })
  t.equal(table.find(record.id), undefined)
  t.throws(() => table.get(record.id), { code: 'not_found' })
})
