// A client that got a response for a command finds its record in the history.
import t from 'tap'
import { createPendingRecords } from '../../../coordinator/commands/pending-records.ts'

const LONG_MS = 60_000

t.test('waits for the records of confirmed commands of the box, and for no others', async (t) => {
  const pending = createPendingRecords()
  await pending.waitForCommit('box', LONG_MS)
  const record = pending.add('box', 'first')
  await pending.waitForCommit('box', LONG_MS)
  record.confirm()
  pending.add('other-box', 'second').confirm()
  await pending.waitForCommit('box', LONG_MS, 'older')
  let resolved = false
  const waiting = pending.waitForCommit('box', LONG_MS).then(() => {
    resolved = true
  })
  pending.markCommitted('other-box', ['second', 'first'])
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(resolved, 'records of another box do not count')
  pending.markCommitted('box', ['first'])
  await waiting
  await pending.waitForCommit('box', LONG_MS)
})

t.test('does not wait for a record committed before the response, or for a cancelled one', async () => {
  const pending = createPendingRecords()
  const early = pending.add('box', 'early')
  pending.markCommitted('box', ['early'])
  early.confirm()
  const failed = pending.add('box', 'failed')
  failed.cancel()
  failed.confirm()
  await pending.waitForCommit('box', LONG_MS)
})

t.test('stops waiting for a box that confirms commands and never reports them', async (t) => {
  let now = 0
  const pending = createPendingRecords(() => now)
  pending.add('box', 'never').confirm()
  await pending.waitForCommit('box', 5)
  now = 20_000
  await pending.waitForCommit('box', LONG_MS)
  for (let i = 0; i < 1000; i++) pending.add('flood', `p${i}`).confirm()
  pending.markCommitted(
    'flood',
    Array.from({ length: 128 }, (_, i) => `p${999 - i}`),
  )
  await pending.waitForCommit('flood', LONG_MS)
  t.pass('only the newest 128 commands of a box are tracked')
})
