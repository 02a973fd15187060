// Records of ended processes are given up at last, the oldest first; what runs never is.
import { readdirSync } from 'node:fs'
import t from 'tap'
import { expiredProcessIds } from '../../../../agent/exec/detached/retention.ts'
import { waitUntil } from '../exec-app.ts'
import { agent, openAgent } from './support.ts'

const KEEP = { count: 3, ageMs: 1000, logBytes: 100 }
const ended = (processId: string, exitedAt: number, logBytes = 10) => ({ processId, exitedAt, logBytes })

t.test('too many, too old, too large', async (t) => {
  t.same(expiredProcessIds([], 0, KEEP), [])
  t.same(expiredProcessIds([ended('b', 2), ended('a', 1), ended('c', 3)], 10, KEEP), [])
  t.same(expiredProcessIds([ended('b', 2), ended('a', 1), ended('c', 3), ended('d', 4)], 10, KEEP), ['a'])
  t.same(expiredProcessIds([ended('a', 0), ended('b', 2)], 1001, KEEP), ['a'])
  t.same(expiredProcessIds([ended('a', 1), ended('b', 2, 95), ended('c', 3)], 10, KEEP), ['b', 'a'])
})

t.test('the oldest goes, with its dir, and then its id is not known', async (t) => {
  const { start, ended, list, kill, app, dir } = await agent(t, { retention: { count: 2 } })
  const running = await start('exec sleep 600')
  const ids = []
  for (let number = 0; number < 4; number++) {
    const { processId } = await start(`echo ${number}`)
    await ended(processId)
    ids.unshift(processId)
  }
  t.same(
    (await list()).map(({ processId }) => processId),
    [ids[0], ids[1], running.processId],
  )
  t.equal((await app.inject(`/exec/${ids[3]}`)).statusCode, 404)
  await waitUntil(
    'their folders are gone',
    () => readdirSync(dir).filter((one) => one[0] === 'p').length === 3,
  )
  await kill(running.processId)
})

t.test('what is too much when an agent starts goes too', async (t) => {
  const first = await agent(t)
  for (let number = 0; number < 3; number++) await first.ended((await first.start('echo x')).processId)
  await first.close()
  const second = await openAgent(t, first.home, { retention: { logBytes: 4096 } })
  t.equal((await second.list()).length, 1)
})
