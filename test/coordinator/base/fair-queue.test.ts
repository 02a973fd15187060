// The queue of work that all workspaces share.
import t from 'tap'
import { createFairQueue } from '../../../coordinator/base/fair-queue.ts'

/** Starts tasks that end by end(). */
function createTasks(concurrency: number) {
  const queue = createFairQueue(concurrency)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const add = (name: string) => {
    const [group = ''] = name
    return queue.run(group, async () => {
      started.push(name)
      await new Promise<void>((resolve) => void ends.set(name, resolve))
      return name
    })
  }
  const end = async (name: string, task: Promise<string> | undefined) => {
    ends.get(name)?.()
    await task
  }
  return { queue, started, add, end }
}

t.test('a group that has much to do does not delay another one', async (t) => {
  const { queue, started, add, end } = createTasks(2)
  const tasks = new Map(['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((name) => [name, add(name)]))
  t.same(started, ['a1', 'a2'], 'one group may use all slots while no other one waits')
  t.equal(queue.waiting, 5)
  const order = ['a1', 'a2', 'b1', 'a3', 'c1', 'b2', 'a4']
  for (const name of order) await end(name, tasks.get(name))
  t.same(started, order)
  t.equal(queue.waiting, 0)
})

t.test('a function that fails frees its slot', async (t) => {
  const queue = createFairQueue(1)
  await t.rejects(
    queue.run('a', () => {
      throw new Error('failed')
    }),
    { message: 'failed' },
  )
  t.equal(await queue.run('a', () => 1), 1)
})

t.test('what waits is rejected by clear()', async (t) => {
  const { queue, add, end } = createTasks(1)
  const [running, waiting] = [add('a1'), add('b1')]
  queue.clear(new Error('stopping'))
  await t.rejects(waiting, { message: 'stopping' })
  await end('a1', running)
  t.equal(await running, 'a1')
})
