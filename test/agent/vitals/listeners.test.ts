// Counting the box's listening sockets, and caching their owners.
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createListenerCounter } from '../../../agent/vitals/listeners.ts'
import { createFakeProc } from './fake-proc.ts'

t.test('counts listening TCP sockets of IPv4 and IPv6, and no connected ones', async (t) => {
  const proc = createFakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  t.equal(await count(), 0)
  proc.setSockets('tcp', [10, 11])
  proc.setSockets('tcp6', [12, 13], '01')
  proc.addProcess({ pid: 5, sockets: [10, 11, 12, 13] })
  t.equal(await count(), 2)
  proc.setSockets('tcp6', [12, 13])
  t.equal(await count(), 4)
  proc.setSockets('tcp', [])
  t.equal(await count(), 2)
})

t.test('does not count sockets of other boxes', async (t) => {
  const proc = createFakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: false })
  proc.setSockets('tcp', [10, 11, 12])
  proc.addProcess({ pid: 5, sockets: [10], home: '/home/box' })
  proc.addProcess({ pid: 6, sockets: [11], home: '/home/box2' })
  t.equal(await count(), 1)
})

t.test('counts a socket that two processes share once', async (t) => {
  const proc = createFakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  proc.setSockets('tcp', [10])
  proc.addProcess({ pid: 5, sockets: [10] })
  proc.addProcess({ pid: 6, sockets: [10] })
  t.equal(await count(), 1)
})

t.test('looks up the owner of a socket only once', async (t) => {
  const proc = createFakeProc(t)
  const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
  proc.setSockets('tcp', [10, 11])
  proc.addProcess({ pid: 5, sockets: [10] })
  t.equal(await count(), 1)
  // The cached owners stay valid: socket 10 belongs to the box, socket 11 does not.
  proc.addProcess({ pid: 5, sockets: [11] })
  t.equal(await count(), 1)
  // A new socket triggers a new lookup.
  proc.setSockets('tcp', [10, 11, 12])
  proc.addProcess({ pid: 5, sockets: [12] })
  t.equal(await count(), 2)
})

t.test(
  'ignores processes whose descriptors the agent is not permitted to list',
  { skip: process.getuid?.() === 0 && 'root can read all processes' },
  async (t) => {
    const proc = createFakeProc(t)
    const count = createListenerCounter({ procRoot: proc.root, home: '/home/box', privatePids: true })
    proc.setSockets('tcp', [10, 11])
    proc.addProcess({ pid: 5, sockets: [10] })
    proc.addProcess({ pid: 6, sockets: [11] })
    chmodSync(join(proc.root, '6/fd'), 0)
    t.teardown(() => chmodSync(join(proc.root, '6/fd'), 0o700))
    t.equal(await count(), 1)
  },
)
