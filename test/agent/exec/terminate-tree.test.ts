// Which processes are taken for a command's own: a pid that was used again names a stranger.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readProcess } from '../../../agent/exec/process-table.ts'
import { findTreeMembers, terminateTree } from '../../../agent/exec/terminate-tree.ts'
import { isAlive } from './exec-app.ts'

async function sleeper(t: Test, env: Record<string, string> = {}) {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { ...process.env, ...env } })
  await once(child, 'spawn')
  t.teardown(() => child.kill('SIGKILL'))
  const pid = child.pid ?? 0
  const startTime = readProcess(pid)?.startTime ?? 0
  return { child, pid, startTime }
}

t.test('the leader is found by pid and start time', async (t) => {
  const { child, pid, startTime } = await sleeper(t)
  const tree = { pid, startTime, processId: 'p_none' }
  t.same(
    findTreeMembers(tree).members.map((entry) => entry.pid),
    [pid],
  )
  const ended = once(child, 'exit')
  t.same(await terminateTree(tree), { signal: 'TERM', survivors: [] })
  t.same(await ended, [null, 'SIGTERM'])
})

t.test('a process that got the pid later is left alone', async (t) => {
  const { pid, startTime } = await sleeper(t)
  for (const other of [startTime - 1, startTime + 1]) {
    t.same(await terminateTree({ pid, startTime: other, processId: 'p_none' }), {
      signal: null,
      survivors: [],
    })
  }
  t.equal(isAlive(pid), true)
})

t.test('the mark is compared as a whole', async (t) => {
  const marked = await sleeper(t, { BOXWOOD_PROCESS_ID: 'p_tree1' })
  const longer = await sleeper(t, { BOXWOOD_PROCESS_ID: 'p_tree12' })
  // The leader ended long ago, and no process can have this pid.
  const gone = { pid: 2 ** 22 + 1, startTime: 1, processId: 'p_tree1' }
  t.same(
    findTreeMembers(gone).members.map((entry) => entry.pid),
    [marked.pid],
  )
  t.same(await terminateTree(gone), { signal: 'TERM', survivors: [] })
  t.equal(isAlive(longer.pid), true)
})

t.test(
  'what a keeper has adopted belongs to the command, however long before it the keeper started',
  async (t) => {
    const { pid, startTime } = await sleeper(t)
    // Older than its child by far.
    const keeper = { pid: process.pid, startTime: readProcess(process.pid)?.startTime ?? 0 }
    const tree = { pid: 2 ** 22 + 1, startTime, processId: 'p_none', subreaper: keeper }
    t.ok(keeper.startTime < startTime)
    t.ok(findTreeMembers(tree).members.some((entry) => entry.pid === pid))
    const other = { ...keeper, startTime: keeper.startTime + 1 }
    t.notOk(
      findTreeMembers({ ...tree, subreaper: other }).members.some((entry) => entry.pid === pid),
      'another with its pid keeps none',
    )
  },
)

t.test('nothing is left to end', async (t) => {
  const { child, pid, startTime } = await sleeper(t)
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  t.same(await terminateTree({ pid, startTime, processId: 'p_none' }), { signal: null, survivors: [] })
  t.same(await terminateTree({ pid, processId: 'p_none' }), { signal: null, survivors: [] })
})

const statOf = ({ pid, startTime }: { pid: number; startTime: number }, ppid: number) =>
  `${pid} (sleep) S ${ppid} ${pid} ${pid}${' 0'.repeat(15)} ${startTime} 0`

/** A process table of one process, which is there; what it says of it can be changed. */
async function tableOf(t: Test, one: { pid: number; startTime: number }) {
  const root = t.testdir()
  const folder = join(root, String(one.pid))
  const write = (name: string, text: string) => writeFile(join(folder, name), text)
  await mkdir(folder)
  await write('stat', statOf(one, 1))
  await write('environ', '')
  await write('cmdline', '')
  return { root, write, remove: () => rm(folder, { recursive: true }) }
}

t.test('who is just becoming another program may be one of them', async (t) => {
  const one = await sleeper(t)
  const table = await tableOf(t, one)
  const tree = { pid: 2 ** 22 + 1, startTime: one.startTime, processId: 'p_mark' }
  const look = () => findTreeMembers(tree, undefined, table.root)
  t.same(look(), { members: [], inconclusive: true })

  const ended = once(one.child, 'exit').then(async ([, signal]) => {
    await table.remove()
    return signal
  })
  const ending = terminateTree(tree, 60_000, table.root)
  // Many looks later it is. With arguments and no environment it would be somebody else.
  await delay(200)
  await table.write('environ', 'BOXWOOD_PROCESS_ID=p_mark\x00')
  t.same(await ending, { signal: 'TERM', survivors: [] })
  t.equal(await ended, 'SIGTERM')
})

t.test('and who is known to be somebody else is not waited for', async (t) => {
  const one = await sleeper(t)
  const table = await tableOf(t, one)
  const none = { members: [], inconclusive: false }
  const tree = { pid: 2 ** 22 + 1, startTime: one.startTime, processId: 'p_mark' }
  const look = (startTime = tree.startTime) => findTreeMembers({ ...tree, startTime }, undefined, table.root)
  t.same(look(one.startTime + 1), none, 'it is older than the command')
  await table.write('cmdline', 'sleep\x00')
  t.same(look(), none, 'it has arguments')
  await table.write('cmdline', '')
  await table.write('environ', 'HOME=/\x00')
  t.same(look(), none, 'it has an environment')
  await table.write('environ', '')
  await table.write('stat', statOf(one, 2))
  t.same(look(), none, 'it is a thread of the kernel')
})

t.test('one that stays blank is waited for until the deadline', async (t) => {
  const one = await sleeper(t)
  const table = await tableOf(t, one)
  const tree = { pid: 2 ** 22 + 1, startTime: one.startTime, processId: 'p_mark' }
  t.same(await terminateTree(tree, 50, table.root), { signal: null, survivors: [] })
  t.equal(isAlive(one.pid), true)
})
