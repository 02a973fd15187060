// npm run chaos -- --minutes N [--seed S]: checks a large audit log and random histories of boxes, then repeats the chaos
// test, each round with another seed.
// npm run chaos -- --provider docker [--histories N] [--seed S]: kills the coordinator and the engine of a provider instead.
import { parseArgs } from 'node:util'
import t from 'tap'
import { checkLargeAuditLog } from './support/audit-log-load.ts'
import { runChaosRound, startChaosSetup } from './support/chaos/chaos-round.ts'
import { runDeletionRound } from './support/chaos/deletion-round.ts'
import { runEngineRound } from './support/chaos/engine-round.ts'
import { runExecEndRound } from './support/chaos/exec-end-round.ts'
import { startFixedPortSetup } from './support/chaos/fixed-port-setup.ts'
import { runHalfSentRound } from './support/chaos/half-sent-round.ts'
import { runHeldBodiesRound } from './support/chaos/held-bodies-round.ts'
import { runInodesRound } from './support/chaos/inodes-round.ts'
import { runLifeRound } from './support/chaos/life-round.ts'
import { runLostMachineRound } from './support/chaos/lost-machine-round.ts'
import { runPortRound } from './support/chaos/port-round.ts'
import { checkRefusedUploads } from './support/chaos/refused-uploads.ts'
import { runSuspendRound } from './support/chaos/suspend-round.ts'
import { startTestCoordinator } from './support/coordinator.ts'
import { TEST_PROVIDERS, type TestProviderName } from './support/engines/providers.ts'
import { runHistory } from './support/simulation/history.ts'
import { createMemoryDatabase } from './support/simulation/memory-database.ts'
import { SKIP_MOUNT } from './support/small-disk.ts'
import { createOwner } from './support/workspace.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    provider: { type: 'string' },
    histories: { type: 'string', default: '20' },
  },
})
const minutes = Number(values.minutes)
const histories = Number(values.histories)
const firstSeed = Number(values.seed ?? Date.now() % 2 ** 31)
const providers = Object.keys(TEST_PROVIDERS) as TestProviderName[]
const provider = providers.find((name) => name === values.provider)
if (values.provider !== undefined && provider === undefined) {
  console.error(`--provider must be one of ${providers.join(', ')}.`)
  process.exit(2)
}
if (!(minutes > 0) || !(histories > 0) || !Number.isSafeInteger(firstSeed)) {
  console.error(
    '--minutes and --histories must be positive numbers and --seed an integer. Usage: npm run chaos -- --minutes N [--seed S]',
  )
  process.exit(2)
}

if (provider !== undefined)
  t.test(`${histories} histories of the provider ${provider} from seed ${firstSeed}`, async (t) => {
    const started = await TEST_PROVIDERS[provider].start()
    if ('skip' in started) return void t.pass('', { skip: started.skip })
    t.teardown(started.close)
    t.comment(JSON.stringify(await runEngineRound(t, started, { seed: firstSeed, histories, operations: 5 })))
  })
else runAll()

function runAll(): void {
  t.test('the audit log with a million events', async (t) => {
    await checkLargeAuditLog(t, { sqlite: 1_000_000, postgres: 1_000_000 })
  })
  const HISTORIES = 1000
  t.test(`${HISTORIES} random histories of a box from seed ${firstSeed}`, async (t) => {
    const database = await createMemoryDatabase()
    t.teardown(() => database.close())
    const owner = await createOwner(database.db)
    for (let seed = firstSeed; seed < firstSeed + HISTORIES; seed++) await runHistory(seed, database, owner)
    t.pass(`${HISTORIES} histories`)
  })
  t.test(`chaos for ${minutes} minutes from seed ${firstSeed}`, async (t) => {
    const setup = await startChaosSetup(t)
    const endsAt = performance.now() + minutes * 60_000
    for (let seed = firstSeed; seed === firstSeed || performance.now() < endsAt; seed++) {
      // --seed with the seed of a failed round repeats that round.
      t.comment(JSON.stringify(await runChaosRound(t, setup, { seed, mebibytes: 200, faults: 20 })))
      await runDeletionRound(t, setup, { seed })
      await checkRefusedUploads(t, setup)
      await runLostMachineRound(t, setup, { seed })
      // Their coordinators end with the subtest.
      await t.test(`restarts and revocations, seed ${seed}`, async (t) => {
        await runHeldBodiesRound(t, await startTestCoordinator(t), { seed })
        const fixedPort = await startFixedPortSetup(t)
        await runPortRound(t, fixedPort, { seed })
        t.comment(JSON.stringify(await runSuspendRound(t, fixedPort, { seed })))
        t.comment(JSON.stringify(await runExecEndRound(t, fixedPort, { seed })))
        await runHalfSentRound(t, fixedPort)
      })
      await t.test('a box with many files', async (t) => {
        const result = await runInodesRound(t)
        if (result === undefined) t.pass('needs a small file system', { skip: SKIP_MOUNT })
      })
      // Its coordinator ends with the subtest.
      await t.test(`the life of a box, seed ${seed}`, async (t) => {
        t.comment(JSON.stringify(await runLifeRound(t, { seed, mebibytes: 200, randomOperations: 22 })))
      })
    }
  })
}
