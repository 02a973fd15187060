// Whoever was told that a command is recorded finds the record.
import t from 'tap'
import { createExpectedRecords } from '../../../coordinator/commands/expected.ts'

const LONG = 60_000

t.test('a reader waits for what was answered, and for nothing else', async (t) => {
  const expected = createExpectedRecords()
  await expected.settled('box', LONG)
  const one = expected.expect('box', 'one')
  await expected.settled('box', LONG)
  one.answered()
  expected.expect('other', 'two').answered()
  await expected.settled('box', LONG, 'an older one')
  let settled = false
  const waiting = expected.settled('box', LONG).then(() => {
    settled = true
  })
  expected.arrived('other', ['two', 'one'])
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(settled)
  expected.arrived('box', ['one'])
  await waiting
  await expected.settled('box', LONG)
})

t.test('reports may be faster than the answer, or there may be none', async () => {
  const expected = createExpectedRecords()
  const early = expected.expect('box', 'early')
  expected.arrived('box', ['early'])
  early.answered()
  const failed = expected.expect('box', 'failed')
  failed.dropped()
  failed.answered()
  await expected.settled('box', LONG)
})

t.test('a box that never reports is waited for a while, and not for ever', async (t) => {
  let now = 0
  const expected = createExpectedRecords(() => now)
  expected.expect('box', 'never').answered()
  await expected.settled('box', 5)
  now = 20_000
  await expected.settled('box', LONG)
  for (let i = 0; i < 1000; i++) expected.expect('flood', `p${i}`).answered()
  expected.arrived(
    'flood',
    Array.from({ length: 128 }, (_, i) => `p${999 - i}`),
  )
  await expected.settled('flood', LONG)
  t.pass('the rest was let go of')
})
