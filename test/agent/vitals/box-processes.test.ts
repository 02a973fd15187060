// Which processes belong to the box, and what is known about each.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BoxProcesses, createBoxProcesses } from '../../../agent/vitals/box-processes.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { createFakeProc } from './fake-proc.ts'

const BOX = 'a1b2'
const MARKER = [`BOXWOOD_BOX=${BOX}`]
const listPids = async (processes: BoxProcesses) => (await processes.list()).map(({ pid }) => pid)

t.test('describes each process', async (t) => {
  const proc = createFakeProc(t)
  const name = 'x) S 1 (\n"é'
  proc.addProcess({ pid: 7, ppid: 3, name, state: 'R', start: 900, uid: 1234 })
  proc.addProcess({ pid: 10, cpu: 5, childrenCpu: 6, rssKb: 40, anonKb: 20, shmemKb: 10 })
  const processes = createBoxProcesses({ procRoot: proc.root, membership: null })
  t.match(await processes.list(), [
    { pid: 7, ppid: 3, name, state: 'R', startTime: 900, uid: 1234, threads: 1 },
    { pid: 10, cpuTicks: 5, childrenCpuTicks: 6, rssBytes: 40 * 1024, anonymousBytes: 30 * 1024 },
  ])
})

t.test('names the program where Node has renamed the process to its thread', async (t) => {
  const proc = createFakeProc(t)
  const name = 'MainThread'
  proc.addProcess({ pid: 2, name, args: ['/usr/bin/node', 'server.js'] })
  proc.addProcess({ pid: 3, name, args: ['next-server'] })
  proc.addProcess({ pid: 4, name })
  const processes = await createBoxProcesses({ procRoot: proc.root, membership: null }).list()
  t.strictSame(
    processes.map((process) => process.name),
    ['node', 'next-server', name],
  )
})

t.test('in a table of its own, every process belongs to the box', async (t) => {
  const proc = createFakeProc(t)
  proc.addProcess({ pid: 5 })
  proc.addProcess({ pid: 6, env: ['BOXWOOD_BOX=other'] })
  t.strictSame(await listPids(createBoxProcesses({ procRoot: proc.root, membership: null })), [5, 6])
})

t.test('omits kernel threads, which a machine of its own shows', async (t) => {
  const proc = createFakeProc(t)
  proc.addProcess({ pid: 1, ppid: 0 })
  proc.addProcess({ pid: 2, ppid: 0, name: 'kthreadd', isKernelThread: true })
  proc.addProcess({ pid: 3, ppid: 2, name: 'kworker/0:0', isKernelThread: true })
  t.strictSame(await listPids(createBoxProcesses({ procRoot: proc.root, membership: null })), [1])
})

t.test('pid 2 of a process namespace is not a kernel thread', async (t) => {
  const proc = createFakeProc(t)
  proc.addProcess({ pid: 2, ppid: 1, name: 'init.sh' })
  proc.addProcess({ pid: 3, ppid: 2, name: 'node' })
  t.strictSame(await listPids(createBoxProcesses({ procRoot: proc.root, membership: null })), [2, 3])
})

t.test('in a shared table, selects by environment, uid and parent', async (t) => {
  const proc = createFakeProc(t)
  const membership = { boxId: BOX, ownUid: 1_900_000_001 }
  const processes = createBoxProcesses({ procRoot: proc.root, membership })
  proc.addProcess({ pid: 1, ppid: 0 })
  proc.addProcess({ pid: 10, env: MARKER })
  // The pid of a child can be lower than that of its parent.
  proc.addProcess({ pid: 8, ppid: 9 })
  proc.addProcess({ pid: 9, ppid: 10 })
  proc.addProcess({ pid: 11, env: [`${MARKER[0]}5`] })
  proc.addProcess({ pid: 12, ppid: 11 })
  proc.addProcess({ pid: 13, uid: 1_900_000_001 })
  proc.addProcess({ pid: 14, uid: 1_900_000_002, env: ['A=b', ...MARKER] })
  t.strictSame(await listPids(processes), [8, 9, 10, 13, 14])
})

t.test('a process still belongs to the box when its parent has exited', async (t) => {
  const proc = createFakeProc(t)
  const processes = createBoxProcesses({ procRoot: proc.root, membership: { boxId: BOX, ownUid: null } })
  proc.addProcess({ pid: 10, env: MARKER })
  proc.addProcess({ pid: 11, ppid: 10 })
  t.strictSame(await listPids(processes), [10, 11])
  proc.removeProcess(10)
  proc.addProcess({ pid: 11, ppid: 1 })
  t.strictSame(await listPids(processes), [11])
  proc.addProcess({ pid: 11, ppid: 1, start: 501 })
  t.strictSame(await listPids(processes), [], 'another process with the same pid')
})

t.test('a process with the pid of an exited parent does not count as the parent', async (t) => {
  const proc = createFakeProc(t)
  const processes = createBoxProcesses({ procRoot: proc.root, membership: { boxId: BOX, ownUid: null } })
  proc.addProcess({ pid: 10, env: MARKER, start: 700 })
  proc.addProcess({ pid: 11, ppid: 10, start: 600 })
  t.strictSame(await listPids(processes), [10])
})

t.test('checks a process again after it has started another program', async (t) => {
  const proc = createFakeProc(t)
  const processes = createBoxProcesses({ procRoot: proc.root, membership: { boxId: BOX, ownUid: null } })
  proc.addProcess({ pid: 10, name: 'node' })
  t.strictSame(await listPids(processes), [])
  proc.addProcess({ pid: 10, name: 'bwrap', env: MARKER })
  t.strictSame(await listPids(processes), [10])
})

/** A directory with the files of a cgroup. `set` changes its pids, or those of a nested one. */
function createFakeCgroup(t: Test) {
  const dir = createTempDir(t, 'cgroup')
  const set = (pids: number[], nested = '') => {
    mkdirSync(join(dir, nested), { recursive: true })
    writeFileSync(join(dir, nested, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''))
  }
  return { dir, set }
}

t.test('in a shared table, selects by the cgroup where the box has one', async (t) => {
  const proc = createFakeProc(t)
  const cgroup = createFakeCgroup(t)
  const membership = { boxId: BOX, ownUid: 1000, cgroupDir: cgroup.dir }
  const processes = createBoxProcesses({ procRoot: proc.root, membership, agentPid: 10 })
  proc.addProcess({ pid: 10, env: MARKER })
  proc.addProcess({ pid: 9, ppid: 10 })
  proc.addProcess({ pid: 11, uid: 1001 })
  proc.addProcess({ pid: 12, uid: 1001, name: 'container' })
  // Has left the cgroup.
  proc.addProcess({ pid: 13, ppid: 10, env: MARKER })
  proc.addProcess({ pid: 14, env: ['BOXWOOD_BOX=other'] })
  cgroup.set([10, 9, 11])
  // An exited process, and one of a PID namespace that the agent does not see.
  cgroup.set([12, 99, 0, 10], 'payload/nested')
  cgroup.set([], 'payload')
  t.strictSame(await listPids(processes), [9, 10, 11, 12])
  proc.removeProcess(11)
  proc.addProcess({ pid: 15, ppid: 10 })
  cgroup.set([10, 9, 15])
  t.strictSame(await listPids(processes), [9, 10, 12, 15])
})

t.test('does not read the processes of other boxes where the box has a cgroup', async (t) => {
  const proc = createFakeProc(t)
  const cgroup = createFakeCgroup(t)
  const membership = { boxId: BOX, ownUid: null, cgroupDir: cgroup.dir }
  const processes = createBoxProcesses({ procRoot: proc.root, membership, agentPid: 10 })
  proc.addProcess({ pid: 10 })
  proc.addProcess({ pid: 20 })
  // A read of this entry fails.
  rmSync(join(proc.root, '20/stat'))
  mkdirSync(join(proc.root, '20/stat'))
  cgroup.set([10])
  t.strictSame(await listPids(processes), [10])
})

t.test('reads the whole table where the cgroup does not exist or does not contain the agent', async (t) => {
  const proc = createFakeProc(t)
  const cgroup = createFakeCgroup(t)
  proc.addProcess({ pid: 10, env: MARKER })
  proc.addProcess({ pid: 11, env: MARKER })
  cgroup.set([11])
  for (const cgroupDir of [cgroup.dir, join(cgroup.dir, 'missing')]) {
    const membership = { boxId: BOX, ownUid: null, cgroupDir }
    const processes = createBoxProcesses({ procRoot: proc.root, membership, agentPid: 10 })
    t.strictSame(await listPids(processes), [10, 11])
  }
})

t.test('processes that form a cycle, because a pid was reused during the pass', async (t) => {
  const proc = createFakeProc(t)
  const processes = createBoxProcesses({ procRoot: proc.root, membership: { boxId: BOX, ownUid: null } })
  proc.addProcess({ pid: 10, ppid: 11 })
  proc.addProcess({ pid: 11, ppid: 10 })
  t.strictSame(await listPids(processes), [])
})

t.test('omits processes that exit while they are read', async (t) => {
  const proc = createFakeProc(t)
  const processes = createBoxProcesses({ procRoot: proc.root, membership: null })
  proc.addProcess({ pid: 10 })
  proc.addProcess({ pid: 11 })
  rmSync(join(proc.root, '10/stat'))
  rmSync(join(proc.root, '11/status'))
  proc.addProcess({ pid: 12 })
  t.strictSame(await listPids(processes), [12])
})

t.test('with many processes, other work runs between reads', async (t) => {
  const proc = createFakeProc(t)
  for (let pid = 1; pid <= 400; pid++) proc.addProcess({ pid })
  const processes = createBoxProcesses({ procRoot: proc.root, membership: null })
  let turns = 0
  let finished = false
  const count = () => {
    turns++
    if (!finished) setImmediate(count)
  }
  setImmediate(count)
  const [first, second] = await Promise.all([processes.list(), processes.list()])
  finished = true
  t.equal(first.length, 400)
  t.equal(second, first, 'concurrent callers share one pass')
  t.ok(turns > 10, `${turns} turns of the event loop`)
})

t.test('lists this process from the real /proc', async (t) => {
  const processes = createBoxProcesses({ membership: null })
  const own = (await processes.list()).find(({ pid }) => pid === process.pid)
  t.match(own, { ppid: process.ppid, uid: process.getuid?.(), state: /^[A-Z]$/ })
  t.ok(own !== undefined && own.rssBytes > own.anonymousBytes && own.anonymousBytes > 0)
})
