// One of three coordinators on one database is killed, drains, or cannot reach the database, while every kind of request arrives at
// any of them.
import t from 'tap'
import { runCutDatabaseRound, runReplicasRound } from '../support/chaos/replicas-round.ts'
import { startPostgres } from '../support/postgres.ts'

const SEED = 20_261_130

t.test('one of three coordinators fails', async (t) => {
  const postgres = await startPostgres()
  if ('skipReason' in postgres) return void t.pass('', { skip: postgres.skipReason })
  t.teardown(postgres.stop)
  for (const signal of ['SIGKILL', 'SIGTERM'] as const)
    await t.test(`it gets ${signal}`, async (t) => {
      const options = { seed: SEED, deaths: 2, signal, maxDownMs: 3_000 }
      t.comment(JSON.stringify(await runReplicasRound(t, postgres, options)))
    })
  await t.test('it cannot reach the database', async (t) => {
    t.comment(JSON.stringify(await runCutDatabaseRound(t, postgres, { seed: SEED })))
  })
})
