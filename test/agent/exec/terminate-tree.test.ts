// Finds and terminates the process tree of a command, also with reused pids and processes in the middle of execve.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { findTreeMembers, terminateTree } from '../../../agent/exec/terminate-tree.ts'
import { readProcess } from '../../../agent/process-table.ts'
import { isAlive } from './support.ts'

/** A pid above the kernel's maximum, for a tree whose leader has exited. */
const EXITED_PID = 2 ** 22 + 1

async function startSleep(t: Test, env: Record<string, string> = {}) {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { ...process.env, ...env } })
  await once(child, 'spawn')
  t.teardown(() => child.kill('SIGKILL'))
  const pid = child.pid ?? 0
  const startTime = readProcess(pid)?.startTime ?? 0
  return { child, pid, startTime }
}

t.test('finds the leader by pid and start time', async (t) => {
  const { child, pid, startTime } = await startSleep(t)
  const tree = { pid, startTime, processId: 'p_none' }
  t.same(
    findTreeMembers(tree).members.map((entry) => entry.pid),
    [pid],
  )
  const exited = once(child, 'exit')
  t.same(await terminateTree(tree), { signal: 'TERM', survivors: [] })
  t.same(await exited, [null, 'SIGTERM'])
})

t.test('does not signal a process that reuses the pid', async (t) => {
  const { pid, startTime } = await startSleep(t)
  for (const otherStartTime of [startTime - 1, startTime + 1]) {
    t.same(await terminateTree({ pid, startTime: otherStartTime, processId: 'p_none' }), {
      signal: null,
      survivors: [],
    })
  }
  t.equal(isAlive(pid), true)
})

t.test('compares the whole value of BOXWOOD_PROCESS_ID', async (t) => {
  const member = await startSleep(t, { BOXWOOD_PROCESS_ID: 'p_tree1' })
  const other = await startSleep(t, { BOXWOOD_PROCESS_ID: 'p_tree12' })
  const tree = { pid: EXITED_PID, startTime: 1, processId: 'p_tree1' }
  t.same(
    findTreeMembers(tree).members.map((entry) => entry.pid),
    [member.pid],
  )
  t.same(await terminateTree(tree), { signal: 'TERM', survivors: [] })
  t.equal(isAlive(other.pid), true)
})

t.test('children of the subreaper belong to the tree, although the subreaper is older', async (t) => {
  const { pid, startTime } = await startSleep(t)
  const subreaper = { pid: process.pid, startTime: readProcess(process.pid)?.startTime ?? 0 }
  const tree = { pid: EXITED_PID, startTime, processId: 'p_none', subreaper }
  t.ok(subreaper.startTime < startTime)
  t.ok(findTreeMembers(tree).members.some((entry) => entry.pid === pid))
  const reused = { ...subreaper, startTime: subreaper.startTime + 1 }
  t.notOk(
    findTreeMembers({ ...tree, subreaper: reused }).members.some((entry) => entry.pid === pid),
    'a process that reuses the pid of the subreaper adds no members',
  )
})

t.test('an exited command needs no signal', async (t) => {
  const { child, pid, startTime } = await startSleep(t)
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  t.same(await terminateTree({ pid, startTime, processId: 'p_none' }), { signal: null, survivors: [] })
  t.same(await terminateTree({ pid, processId: 'p_none' }), { signal: null, survivors: [] })
})

const PF_KTHREAD = 0x200000
const formatStat = ({ pid, startTime }: { pid: number; startTime: number }, flags = 0) =>
  `${pid} (sleep) S 1 ${pid} ${pid} 0 0 ${flags}${' 0'.repeat(12)} ${startTime} 0`

/** A fake /proc with one live process, in the middle of execve: it has neither arguments nor environment. */
async function createFakeProc(t: Test, entry: { pid: number; startTime: number }) {
  const root = t.testdir()
  const dir = join(root, String(entry.pid))
  const write = (name: string, text: string) => writeFile(join(dir, name), text)
  await mkdir(dir)
  await write('stat', formatStat(entry))
  await write('environ', '')
  await write('cmdline', '')
  return { root, write, remove: () => rm(dir, { recursive: true }) }
}

t.test('scans again while a process is in the middle of execve', async (t) => {
  const sleep = await startSleep(t)
  const proc = await createFakeProc(t, sleep)
  const tree = { pid: EXITED_PID, startTime: sleep.startTime, processId: 'p_tree1' }
  const scan = () => findTreeMembers(tree, undefined, proc.root)
  t.same(scan(), { members: [], inconclusive: true })

  const exited = once(sleep.child, 'exit').then(async ([, signal]) => {
    await proc.remove()
    return signal
  })
  const termination = terminateTree(tree, 60_000, proc.root)
  // Enough time for many scans.
  await delay(200)
  await proc.write('environ', 'BOXWOOD_PROCESS_ID=p_tree1\x00')
  t.same(await termination, { signal: 'TERM', survivors: [] })
  t.equal(await exited, 'SIGTERM')
})

t.test('a scan is conclusive when no process without the marker can belong to the tree', async (t) => {
  const sleep = await startSleep(t)
  const proc = await createFakeProc(t, sleep)
  const empty = { members: [], inconclusive: false }
  const tree = { pid: EXITED_PID, startTime: sleep.startTime, processId: 'p_tree1' }
  const scan = (startTime = tree.startTime) => findTreeMembers({ ...tree, startTime }, undefined, proc.root)
  t.same(scan(sleep.startTime + 1), empty, 'the process is older than the command')
  await proc.write('cmdline', 'sleep\x00')
  t.same(scan(), empty, 'the process has arguments')
  await proc.write('cmdline', '')
  await proc.write('environ', 'HOME=/\x00')
  t.same(scan(), empty, 'the process has an environment')
  await proc.write('environ', '')
  await proc.write('stat', formatStat(sleep, PF_KTHREAD))
  t.same(scan(), empty, 'the process is a kernel thread')
})

t.test('stops scanning at the deadline while a process stays in the middle of execve', async (t) => {
  const sleep = await startSleep(t)
  const proc = await createFakeProc(t, sleep)
  const tree = { pid: EXITED_PID, startTime: sleep.startTime, processId: 'p_tree1' }
  t.same(await terminateTree(tree, 50, proc.root), { signal: null, survivors: [] })
  t.equal(isAlive(sleep.pid), true)
})
