// Ids are made of random bytes that are used once.
import t from 'tap'
import { newId } from '../../shared/ids.ts'

/** More than ten pools of random bytes. */
const COUNT = 5_000
/** Hex digits of 64 bits: two random windows are practically never equal. */
const WINDOW = 16

t.test('ids share no bytes, also where one pool of random bytes ends and the next one starts', async (t) => {
  const ids = Array.from({ length: COUNT }, () => newId('process'))
  t.ok(
    ids.every((id) => /^p_[0-9a-f]{24}$/.test(id)),
    'an id has 96 bits',
  )
  const windows = ids.flatMap((id) =>
    Array.from({ length: 24 - WINDOW + 1 }, (_, from) => id.slice(2 + from, 2 + from + WINDOW)),
  )
  t.equal(new Set(windows).size, windows.length)
})
