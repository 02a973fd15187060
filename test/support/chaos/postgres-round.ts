// Postgres is killed and started again while boxes are created, commands run and usage is charged: nothing is lost or doubled.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { startCoordinatorProcess } from '../coordinator-process.ts'
import type { Postgres } from '../postgres.ts'
import { createSeededRandom } from '../random.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { createRepeatingClient } from './repeating-client.ts'

const KILLS = 3
const BOXES = 3
const LINES = 300
/** 500: the database does not respond. */
const WHILE_DOWN = [500, 502, 503]

export async function runPostgresRound(t: Test, postgres: Postgres, { seed }: { seed: number }) {
  const random = createSeededRandom(seed)
  const url = await postgres.newDatabase()
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_DATABASE_URL: url,
    BOXWOOD_LOG: 'silent',
    BOXWOOD_BILLING: 'manual',
  })
  const first = await coordinator.waitForFirstBox()
  const client = createRepeatingClient(coordinator, WHILE_DOWN)
  // Free credit alone runs one box.
  const { workspace } = await coordinator.sendJson('GET', '/api/v1/me')
  const credit = { amountUsd: 100 }
  await coordinator.sendJson('POST', `/api/v1/operator/workspaces/${workspace.id}/credit`, credit)
  const command = `for n in $(seq ${LINES}); do echo "line $n"; sleep 0.02; done`
  const { processId } = await coordinator.exec(first.hostname, command, { detached: true })

  const creating: Promise<{ box: { id: string; hostname: string } }>[] = []
  for (let number = 0; number < KILLS; number++) {
    for (let n = 0; n < BOXES; n++) creating.push(client.post('/boxes', {}))
    await delay(random() * 300)
    await postgres.kill()
    await delay(random() * 1000)
    await postgres.restart()
  }
  const created = await Promise.all(creating)
  const ids = new Set(created.map(({ box }) => box.id))
  t.equal(ids.size, KILLS * BOXES, 'each request has created a box')
  const { boxes } = await coordinator.sendJson('GET', '/api/v1/boxes?live=1')
  t.same(
    boxes.map(({ id }: { id: string }) => id).sort(),
    [first.id, ...ids].sort(),
    'and there is no other one',
  )
  for (const { box } of created) await client.settle(box.id, 'running')

  const record = await waitUntil(
    'the exit of the command is in the history',
    async () => {
      const { command } = await coordinator.sendJson('GET', `/api/v1/boxes/${first.id}/commands/${processId}`)
      return command?.status === 'exited' && command
    },
    LONG_DEADLINE_MS,
  )
  t.equal(record.exitCode, 0)
  const expected = Array.from({ length: LINES }, (_, n) => `line ${n + 1}\n`).join('')
  await waitUntil(
    'the output is in the history',
    async () => {
      const output = await coordinator.sendJson(
        'GET',
        `/api/v1/boxes/${first.id}/commands/${processId}/output`,
      )
      return output.done && output.data === expected
    },
    LONG_DEADLINE_MS,
  )
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  t.teardown(() => database.end())
  t.match(await coordinator.sendJson('GET', '/api/v1/operator/ledger-check'), { differences: [] })
  const { rows } = await database.query("select count(*) from billing_entries where kind = 'free_credit'")
  t.same(rows, [{ count: '1' }], 'the free credit was given once')
  return { created: ids.size }
}
