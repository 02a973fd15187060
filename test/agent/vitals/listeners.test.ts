// Which listening sockets count as the box's own, and that a known one costs no second look.
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createListenerCounter } from '../../../agent/vitals/listeners.ts'
import { fakeProc } from './proc-fixture.ts'

t.test('sockets that listen, of both kinds, and no others', async (t) => {
  const proc = fakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  t.equal(await count(), 0)
  proc.sockets('tcp', [10, 11])
  proc.sockets('tcp6', [12, 13], '01')
  proc.process({ pid: 5, sockets: [10, 11, 12, 13] })
  t.equal(await count(), 2)
  proc.sockets('tcp6', [12, 13])
  t.equal(await count(), 4)
  proc.sockets('tcp', [])
  t.equal(await count(), 2)
})

t.test('not those of neighbours', async (t) => {
  const proc = fakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: false })
  proc.sockets('tcp', [10, 11, 12])
  proc.process({ pid: 5, sockets: [10], home: '/home/box' })
  proc.process({ pid: 6, sockets: [11], home: '/home/box2' })
  t.equal(await count(), 1)
})

t.test('one that two processes hold counts once', async (t) => {
  const proc = fakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  proc.sockets('tcp', [10])
  proc.process({ pid: 5, sockets: [10] })
  proc.process({ pid: 6, sockets: [10] })
  t.equal(await count(), 1)
})

t.test('its owner is looked for once', async (t) => {
  const proc = fakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  proc.sockets('tcp', [10, 11])
  proc.process({ pid: 5, sockets: [10] })
  t.equal(await count(), 1)
  // Whatever the descriptors say now: both sockets are known, one as ours and one as nobody's.
  proc.process({ pid: 5, sockets: [11] })
  t.equal(await count(), 1)
  // Only a new one makes it look again.
  proc.sockets('tcp', [10, 11, 12])
  proc.process({ pid: 5, sockets: [12] })
  t.equal(await count(), 2)
})

t.test(
  'processes that may not be read',
  { skip: process.getuid?.() === 0 && 'root may read all' },
  async (t) => {
    const proc = fakeProc(t)
    const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
    proc.sockets('tcp', [10, 11])
    proc.process({ pid: 5, sockets: [10] })
    proc.process({ pid: 6, sockets: [11] })
    chmodSync(join(proc.root, '6/fd'), 0)
    t.teardown(() => chmodSync(join(proc.root, '6/fd'), 0o700))
    t.equal(await count(), 1)
  },
)
