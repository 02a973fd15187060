// The listening ports of the box and their processes.
import { chmodSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createBoxProcesses } from '../../../agent/vitals/box-processes.ts'
import { createListeners } from '../../../agent/vitals/listeners.ts'
import { MAX_LISTENING_PORTS } from '../../../shared/report-limits.ts'
import { createFakeProc } from './fake-proc.ts'

const OWN_BOX = 'BOXWOOD_BOX=own'

function setUp(t: Test, { ownNetwork = true, isShared = false } = {}) {
  const proc = createFakeProc(t)
  const membership = isShared ? { boxId: 'own', ownUid: null } : null
  const processes = createBoxProcesses({ procRoot: proc.root, membership })
  let now = 0
  let cpuMs = 0
  let cpuMsOfRead = 0
  let agentPort: number | null = null
  const listeners = createListeners({
    ...{ procRoot: proc.root, processes, ownNetwork, readAgentPort: () => agentPort },
    monotonicNow: () => now,
    cpuTimeMs: () => {
      cpuMs += cpuMsOfRead
      return cpuMs
    },
  })
  let changes = 0
  listeners.events.on('change', () => {
    changes += 1
  })
  return {
    ...{ proc, listeners },
    changes: () => changes,
    setAgentPort: (port: number) => {
      agentPort = port
    },
    setCpuMsOfRead: (ms: number) => {
      cpuMsOfRead = ms
    },
    async poll(seconds = 1) {
      now += seconds * 1000
      await listeners.poll()
      return listeners.current()
    },
  }
}

t.test('lists listening TCP ports of IPv4 and IPv6, and no connections', async (t) => {
  const { proc, listeners, poll, changes } = setUp(t)
  t.equal(listeners.current(), null)
  t.strictSame(await poll(), [])
  t.equal(changes(), 1, 'the first list is a change')
  proc.setSockets('tcp', [{ inode: 10, port: 8080 }])
  proc.setSockets('tcp6', [
    { inode: 11, port: 22 },
    { inode: 12, port: 9000, state: '01' },
  ])
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  proc.addProcess({ pid: 6, name: 'sshd', sockets: [11, 12] })
  t.strictSame(await poll(), [
    [22, 6, 'sshd'],
    [8080, 5, 'node'],
  ])
  proc.setSockets('tcp6', [])
  t.strictSame(await poll(), [[8080, 5, 'node']])
  t.equal(changes(), 3)
})

t.test('the port of the agent is not listed', async (t) => {
  const { proc, poll, listeners, setAgentPort } = setUp(t)
  setAgentPort(3128)
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  proc.setSockets('tcp', [
    { inode: 10, port: 3128 },
    { inode: 11, port: 80 },
  ])
  t.strictSame(await poll(), [[80, null, null]])
  t.equal(listeners.count(), 1)
})

t.test("Docker's resolver is not listed", async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [
    { inode: 10, port: 40119, address: '0B00007F', uid: 0 },
    { inode: 11, port: 80 },
  ])
  t.strictSame(await poll(), [[80, null, null]])
})

t.test('an unchanged list is not a change', async (t) => {
  const { proc, poll, changes } = setUp(t)
  proc.addProcess({ pid: 5, sockets: [10] })
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  const ports = await poll()
  proc.setSockets('tcp', [
    { inode: 10, port: 80 },
    { inode: 11, port: 81, state: '01' },
  ])
  t.equal(await poll(), ports)
  t.equal(changes(), 1)
})

t.test('one entry for a process that listens on IPv4 and IPv6', async (t) => {
  const { proc, listeners, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  proc.setSockets('tcp6', [{ inode: 11, port: 80 }])
  proc.addProcess({ pid: 5, name: 'node', sockets: [10, 11] })
  t.strictSame(await poll(), [[80, 5, 'node']])
  t.equal(listeners.count(), 1)
})

t.test('one entry for each process that opened the same port (SO_REUSEPORT)', async (t) => {
  const { proc, listeners, poll } = setUp(t)
  proc.setSockets('tcp', [
    { inode: 10, port: 80 },
    { inode: 11, port: 80 },
  ])
  proc.addProcess({ pid: 6, name: 'nginx', sockets: [10] })
  proc.addProcess({ pid: 5, name: 'nginx', sockets: [11] })
  t.strictSame(await poll(), [
    [80, 5, 'nginx'],
    [80, 6, 'nginx'],
  ])
  t.equal(listeners.count(), 1)
})

t.test('a socket that workers inherited belongs to the oldest process, while it runs', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  proc.addProcess({ pid: 3, name: 'worker', sockets: [10], start: 700 })
  proc.addProcess({ pid: 9, name: 'server', sockets: [10], start: 600 })
  t.strictSame(await poll(), [[80, 9, 'server']])
  proc.removeProcess(9)
  t.strictSame(await poll(30), [[80, 3, 'worker']])
  // Another process with the pid of the exited worker, which has passed the socket on.
  proc.addProcess({ pid: 3, name: 'other', start: 900 })
  proc.addProcess({ pid: 4, name: 'worker', sockets: [10], start: 800 })
  t.strictSame(await poll(30), [[80, 4, 'worker']])
})

t.test('shows the new name of a process that has started another program', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  proc.addProcess({ pid: 5, name: 'sh', sockets: [10] })
  t.strictSame(await poll(), [[80, 5, 'sh']])
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  t.strictSame(await poll(30), [[80, 5, 'node']])
  proc.addProcess({ pid: 5, name: 'MainThread', args: ['/usr/bin/node', 'server.js'], sockets: [10] })
  t.strictSame(await poll(30), [[80, 5, 'node']])
})

t.test("with the host's network, lists only the sockets of the box's processes", async (t) => {
  const { proc, listeners, poll } = setUp(t, { ownNetwork: false, isShared: true })
  proc.setSockets('tcp', [
    { inode: 10, port: 80 },
    { inode: 11, port: 81 },
    { inode: 12, port: 82 },
  ])
  proc.addProcess({ pid: 5, name: 'node', sockets: [10], env: [OWN_BOX] })
  proc.addProcess({ pid: 6, name: 'node', sockets: [11], env: ['BOXWOOD_BOX=other'] })
  t.strictSame(await poll(), [[80, 5, 'node']])
  t.equal(listeners.count(), 1)
})

t.test('with its own network, a socket without a readable owner is listed too', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  t.strictSame(await poll(), [[80, null, null]])
  // The owner was started after the processes were listed.
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  t.strictSame(await poll(), [[80, 5, 'node']])
})

t.test('reads the tables when the number of sockets changes, and every 30 seconds', async (t) => {
  const { proc, poll } = setUp(t)
  proc.addProcess({ pid: 5, name: 'node', sockets: [10, 11] })
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  t.strictSame(await poll(), [[80, 5, 'node']])
  proc.setSockets('tcp', [{ inode: 11, port: 81 }], { isCounted: false })
  t.strictSame(await poll(), [[80, 5, 'node']], 'one was closed, and one opened')
  t.strictSame(await poll(30), [[81, 5, 'node']])
})

t.test('reads long tables less often', async (t) => {
  const { proc, poll, setCpuMsOfRead } = setUp(t)
  proc.addProcess({ pid: 5, name: 'node', sockets: [10, 11, 12] })
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  setCpuMsOfRead(200)
  t.strictSame(await poll(), [[80, 5, 'node']])
  proc.setSockets('tcp', [{ inode: 11, port: 81 }])
  t.strictSame(await poll(3), [[80, 5, 'node']], 'after 200 ms of CPU time, a pause of 4 seconds')
  setCpuMsOfRead(5000)
  t.strictSame(await poll(), [[81, 5, 'node']])
  proc.setSockets('tcp', [{ inode: 12, port: 82 }])
  t.strictSame(await poll(10), [[82, 5, 'node']], 'pauses of at most 10 seconds')
})

t.test('reads the tables less often where other boxes change them', async (t) => {
  const { proc, poll, setCpuMsOfRead } = setUp(t, { ownNetwork: false })
  proc.addProcess({ pid: 5, name: 'node', sockets: [10, 11] })
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  setCpuMsOfRead(8)
  t.strictSame(await poll(), [[80, 5, 'node']])
  proc.setSockets('tcp', [{ inode: 11, port: 81 }])
  t.strictSame(await poll(3), [[80, 5, 'node']], 'after 8 ms of CPU time, a pause of 4 seconds')
  t.strictSame(await poll(), [[81, 5, 'node']])
})

t.test('searches for the owner only of new sockets', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  await poll()
  proc.addProcess({ pid: 4, name: 'older', sockets: [10], start: 1 })
  proc.addProcess({ pid: 6, name: 'new', sockets: [11] })
  proc.setSockets('tcp', [
    { inode: 10, port: 80 },
    { inode: 11, port: 81 },
  ])
  t.strictSame(await poll(), [
    [80, 5, 'node'],
    [81, 6, 'new'],
  ])
})

t.test('bounds the list, and counts all ports', async (t) => {
  const { proc, listeners, poll } = setUp(t)
  const inodes = Array.from({ length: MAX_LISTENING_PORTS + 5 }, (_, i) => 100 + i)
  proc.setSockets('tcp', inodes.map((inode) => ({ inode, port: inode })).reverse())
  proc.addProcess({ pid: 5, name: 'many', sockets: inodes })
  const ports = await poll()
  t.equal(ports?.length, MAX_LISTENING_PORTS)
  t.strictSame(ports?.[0], [100, 5, 'many'])
  t.equal(listeners.count(), MAX_LISTENING_PORTS + 5)
})

t.test('replaces control characters in names', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  proc.addProcess({ pid: 5, name: 'a) \u001b[2J\n\u202e', sockets: [10] })
  t.strictSame(await poll(), [[80, 5, 'a) \uFFFD[2J\uFFFD\uFFFD']])
})

t.test('on a kernel without IPv6 and without counts', async (t) => {
  const { proc, poll } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: 80 }])
  rmSync(join(proc.root, 'net/sockstat'))
  proc.addProcess({ pid: 5, name: 'node', sockets: [10] })
  t.strictSame(await poll(), [[80, 5, 'node']])
})

t.test(
  'descriptors that the agent is not permitted to list',
  { skip: process.getuid?.() === 0 && 'root can read all processes' },
  async (t) => {
    const { proc, poll } = setUp(t)
    proc.setSockets('tcp', [{ inode: 11, port: 81 }])
    proc.addProcess({ pid: 6, sockets: [11] })
    chmodSync(join(proc.root, '6/fd'), 0)
    t.teardown(() => chmodSync(join(proc.root, '6/fd'), 0o700))
    t.strictSame(await poll(), [[81, null, null]])
  },
)

t.test('finds a real server, and notices that it is closed', async (t) => {
  const listeners = createListeners({
    processes: createBoxProcesses({ membership: null }),
    ownNetwork: false,
  })
  await listeners.poll()
  const server = createServer()
  t.teardown(() => server.close())
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const find = async () => {
    await new Promise((done) => setTimeout(done, 20))
    await listeners.poll()
    return listeners.current()?.find(([candidate]) => candidate === port)
  }
  let found = await find()
  while (found === undefined) found = await find()
  t.match(found, [port, process.pid, /./])
  await new Promise((done) => server.close(done))
  while ((await find()) !== undefined);
})
