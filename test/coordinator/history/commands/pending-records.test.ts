// A client that got a response for a command finds its record in the history.
import t from 'tap'
import { createPendingRecords } from '../../../../coordinator/history/commands/pending-records.ts'

const LONG_MS = 60_000

const exited = (...ids: string[]) => ids.map((commandId) => ({ commandId, hasExited: true }))

t.test('waits for the records of confirmed commands of the box, and for no others', async (t) => {
  const pending = createPendingRecords()
  await pending.waitForCommit('box', LONG_MS)
  const record = pending.add('box', 'first', 'exit')
  await pending.waitForCommit('box', LONG_MS)
  record.confirm()
  pending.add('other-box', 'second', 'exit').confirm()
  await pending.waitForCommit('box', LONG_MS, 'older')
  let resolved = false
  const waiting = pending.waitForCommit('box', LONG_MS).then(() => {
    resolved = true
  })
  pending.markCommitted('other-box', exited('second', 'first'))
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(resolved, 'records of another box do not count')
  pending.markCommitted('box', exited('first'))
  await waiting
  await pending.waitForCommit('box', LONG_MS)
})

t.test('does not wait for a record committed before the response, or for a cancelled one', async () => {
  const pending = createPendingRecords()
  const early = pending.add('box', 'early', 'exit')
  pending.markCommitted('box', exited('early'))
  early.confirm()
  const failed = pending.add('box', 'failed', 'exit')
  failed.cancel()
  failed.confirm()
  await pending.waitForCommit('box', LONG_MS)
})

t.test('stops waiting for a box that confirms commands and never reports them', async (t) => {
  let now = 0
  const pending = createPendingRecords(() => now)
  pending.add('box', 'never', 'exit').confirm()
  await pending.waitForCommit('box', 5)
  now = 20_000
  await pending.waitForCommit('box', LONG_MS)
  for (let i = 0; i < 1000; i++) pending.add('flood', `p${i}`, 'exit').confirm()
  pending.markCommitted('flood', exited(...Array.from({ length: 128 }, (_, i) => `p${999 - i}`)))
  await pending.waitForCommit('flood', LONG_MS)
  t.pass('only the newest 128 commands of a box are tracked')
})

t.test('the record of a start counts when the response was sent at the start', async (t) => {
  const pending = createPendingRecords()
  pending.add('box', 'attached', 'start').confirm()
  pending.add('box', 'sync', 'exit').confirm()
  const running = ['attached', 'sync'].map((commandId) => ({ commandId, hasExited: false }))
  pending.markCommitted('box', running)
  await pending.waitForCommit('box', LONG_MS, 'attached')
  let resolved = false
  const waiting = pending.waitForCommit('box', LONG_MS).then(() => {
    resolved = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(resolved, 'the synchronous command has not exited')
  pending.markCommitted('box', exited('sync'))
  await waiting
})
