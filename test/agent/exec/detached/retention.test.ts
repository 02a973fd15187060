// Records of exited processes are deleted beyond the retention limits, oldest first. Running processes are kept.
import { readdirSync } from 'node:fs'
import t from 'tap'
import { expiredProcessIds } from '../../../../agent/exec/detached/retention.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createAgent, openAgent } from './support.ts'

const RETENTION = { count: 3, ageMs: 1000, totalLogBytes: 100 }
const exited = (processId: string, exitedAt: number, logBytes = 10) => ({ processId, exitedAt, logBytes })

t.test('selects processes beyond the maximum count, age and size', async (t) => {
  const select = (processes: ReturnType<typeof exited>[], now: number) =>
    expiredProcessIds(processes, now, RETENTION)
  const three = [exited('b', 2), exited('a', 1), exited('c', 3)]
  t.same(select([], 0), [], 'no processes')
  t.same(select(three, 10), [], 'within all limits')
  t.same(select([...three, exited('d', 4)], 10), ['a'], 'beyond the count')
  t.same(select([exited('a', 0), exited('b', 2)], 1001), ['a'], 'beyond the age')
  t.same(
    select([exited('a', 1), exited('b', 2, 95), exited('c', 3)], 10),
    ['b', 'a'],
    'beyond the total size',
  )
})

t.test('deletes the oldest process with its directory', async (t) => {
  const { start, waitForExit, list, kill, request, dir } = await createAgent(t, { retention: { count: 2 } })
  const running = await start('exec sleep 600')
  const ids = []
  for (let number = 0; number < 4; number++) {
    const { processId } = await start(`echo ${number}`)
    await waitForExit(processId)
    ids.unshift(processId)
  }
  t.same(
    (await list()).map(({ processId }) => processId),
    [ids[0], ids[1], running.processId],
  )
  t.equal((await request({ path: `/exec/${ids[3]}` })).status, 404)
  await waitUntil(
    'the directories are deleted',
    () => readdirSync(dir).filter((name) => name[0] === 'p').length === 3,
  )
  await kill(running.processId)
})

t.test('applies the limits when the agent starts', async (t) => {
  const first = await createAgent(t)
  for (let number = 0; number < 3; number++) await first.waitForExit((await first.start('echo x')).processId)
  await first.close()
  // One block for the log, one for its time index.
  const second = await openAgent(t, first.home, { retention: { totalLogBytes: 8192 } })
  t.equal((await second.list()).length, 1)
})
