// Which processes are taken for a command's own: a pid that was used again names a stranger.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { readProcess } from '../../../agent/exec/process-table.ts'
import { findTree, terminateTree } from '../../../agent/exec/terminate-tree.ts'
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
    findTree(tree).map((entry) => entry.pid),
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
    findTree(gone).map((entry) => entry.pid),
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
    const tree = { pid: 2 ** 22 + 1, startTime, processId: 'p_none', keeper }
    t.ok(keeper.startTime < startTime)
    t.ok(findTree(tree).some((entry) => entry.pid === pid))
    const other = { ...keeper, startTime: keeper.startTime + 1 }
    t.notOk(
      findTree({ ...tree, keeper: other }).some((entry) => entry.pid === pid),
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
