// npm run chaos -- --minutes N [--seed S]: checks a large audit log and random histories of boxes, then repeats the chaos
// test, each round with another seed.
// npm run chaos -- --provider docker [--histories N] [--seed S]: kills the coordinator and the engine of a provider instead.
// npm run chaos -- --isolation [--starts N] [--level L | --provider P] [--loops N] [--seed S]: starts a coordinator many times
// while the machine is busy, and compares the isolation. Default: 50 starts at each level, and of each engine.
// npm run chaos -- --machine [--minutes N] [--seed S]: repeats random operations on local boxes on a machine of their own, and
// compares its mounts, networks, settings, cgroups and processes.
import { parseArgs } from 'node:util'
import t from 'tap'
import { ISOLATION_LEVELS } from '../shared/api/boxes.ts'
import { checkLargeAuditLog } from './support/audit-log-load.ts'
import { runChaosRound, startChaosSetup } from './support/chaos/chaos-round.ts'
import { runDeletionRound } from './support/chaos/deletion-round.ts'
import { runEngineRound } from './support/chaos/engine-round.ts'
import { runExecEndRound } from './support/chaos/exec-end-round.ts'
import { startFixedPortSetup } from './support/chaos/fixed-port-setup.ts'
import { runHalfSentRound } from './support/chaos/half-sent-round.ts'
import { runHeldBodiesRound } from './support/chaos/held-bodies-round.ts'
import { runInodesRound } from './support/chaos/inodes-round.ts'
import { runIsolationRound } from './support/chaos/isolation-round.ts'
import { runLifeRound } from './support/chaos/life-round.ts'
import { runLostMachineRound } from './support/chaos/lost-machine-round.ts'
import { runMachineRound } from './support/chaos/machine-round.ts'
import { runPortRound } from './support/chaos/port-round.ts'
import { runPostgresRound } from './support/chaos/postgres-round.ts'
import { runRefusedUpgradeRound } from './support/chaos/refused-upgrade-round.ts'
import { checkRefusedUploads } from './support/chaos/refused-uploads.ts'
import { runCutDatabaseRound, runReplicasRound } from './support/chaos/replicas-round.ts'
import { runSuspendRound } from './support/chaos/suspend-round.ts'
import { runWarmRound } from './support/chaos/warm-round.ts'
import { startTestCoordinator } from './support/coordinator.ts'
import { TEST_PROVIDERS, type TestProviderName } from './support/engines/providers.ts'
import { availableLevels } from './support/isolation-levels.ts'
import {
  findOwnMachineProblem,
  isOnOwnMachine,
  prepareOwnMachine,
  runOnOwnMachine,
} from './support/own-machine.ts'
import { startPostgres } from './support/postgres.ts'
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
    machine: { type: 'boolean', default: false },
    isolation: { type: 'boolean', default: false },
    level: { type: 'string' },
    starts: { type: 'string', default: '50' },
    /** Busy processes for each CPU. 0: the machine is busy already. */
    loops: { type: 'string', default: '2' },
  },
})
const minutes = readPositive('minutes')
const histories = readPositive('histories')
const starts = readPositive('starts')
const loops = Number(values.loops)
if (!Number.isSafeInteger(loops) || loops < 0) fail('--loops must be a number of processes.')
const firstSeed = Number(values.seed ?? Date.now() % 2 ** 31)
if (!Number.isSafeInteger(firstSeed)) fail('--seed must be an integer.')
const provider = readChoice('provider', Object.keys(TEST_PROVIDERS) as TestProviderName[])
const level = readChoice('level', ISOLATION_LEVELS)

function fail(problem: string): never {
  console.error(`${problem} Usage: npm run chaos -- --minutes N [--seed S]`)
  process.exit(2)
}

function readPositive(name: 'minutes' | 'histories' | 'starts'): number {
  const number = Number(values[name])
  return number > 0 ? number : fail(`--${name} must be a positive number.`)
}

function readChoice<T extends string>(name: 'provider' | 'level', choices: readonly T[]): T | undefined {
  const choice = choices.find((other) => other === values[name])
  if (values[name] === undefined || choice !== undefined) return choice
  return fail(`--${name} must be one of ${choices.join(', ')}.`)
}

if (values.machine) runMachineRounds()
else if (values.isolation) await runIsolationRounds()
else if (provider !== undefined)
  t.test(`${histories} histories of the provider ${provider} from seed ${firstSeed}`, async (t) => {
    const started = await TEST_PROVIDERS[provider].start()
    if ('skip' in started) return void t.pass('', { skip: started.skip })
    t.teardown(started.close)
    t.comment(JSON.stringify(await runEngineRound(t, started, { seed: firstSeed, histories, operations: 5 })))
  })
else runAll()

function runMachineRounds(): void {
  const title = `boxes do not change their machine, ${minutes} minutes from seed ${firstSeed}`
  const args = ['--machine', `--minutes=${minutes}`, `--seed=${firstSeed}`]
  if (!isOnOwnMachine())
    t.test(title, { skip: findOwnMachineProblem() }, (t) => runOnOwnMachine(t, import.meta.filename, args))
  else {
    prepareOwnMachine()
    const endsAt = performance.now() + minutes * 60_000
    t.test(title, async (t) => {
      for (let seed = firstSeed; seed === firstSeed || performance.now() < endsAt; seed++)
        await t.test(`seed ${seed}`, async (t) => {
          t.comment(JSON.stringify(await runMachineRound(t, { seed, operations: 12 })))
        })
    })
  }
}

/** One at a time: each starts on the machine without its busy processes. */
async function runIsolationRounds(): Promise<void> {
  const options = { seed: firstSeed, starts, loopsPerCpu: loops }
  const isSelected = { level: level !== undefined || provider === undefined, provider: level === undefined }
  for (const { level: name, skip } of await availableLevels())
    if (isSelected.level && name === (level ?? name))
      t.test(`${starts} starts at level ${name}, seed ${firstSeed}`, { skip }, async (t) => {
        t.comment(JSON.stringify(await runIsolationRound(t, { ...options, level: name })))
      })
  const { local: _local, ...engines } = TEST_PROVIDERS
  for (const [name, engine] of Object.entries(engines))
    if (isSelected.provider && name === (provider ?? name))
      t.test(`${starts} starts with boxes of ${name}, seed ${firstSeed}`, async (t) => {
        const started = await engine.start()
        if ('skip' in started) return void t.pass('', { skip: started.skip })
        t.teardown(started.close)
        const result = await runIsolationRound(t, { ...options, level: 'auto', provider: started })
        t.comment(JSON.stringify(result))
      })
}

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
      await t.test(`an upgrade that an agent refuses, seed ${seed}`, async (t) => {
        t.comment(JSON.stringify(await runRefusedUpgradeRound(t, { seed })))
      })
      await t.test(`Postgres is killed, seed ${seed}`, async (t) => {
        const postgres = await startPostgres()
        if ('skipReason' in postgres) return void t.pass('', { skip: postgres.skipReason })
        t.teardown(postgres.stop)
        t.comment(JSON.stringify(await runPostgresRound(t, postgres, { seed })))
      })
      // SIGKILL: another one takes over after 15 s at the latest. SIGTERM: it drains.
      for (const signal of ['SIGKILL', 'SIGTERM'] as const)
        await t.test(`three coordinators, ${signal}, seed ${seed}`, async (t) => {
          const postgres = await startPostgres()
          if ('skipReason' in postgres) return void t.pass('', { skip: postgres.skipReason })
          t.teardown(postgres.stop)
          const options = { seed, deaths: 10, signal, maxDownMs: 25_000 }
          t.comment(JSON.stringify(await runReplicasRound(t, postgres, options)))
        })
      await t.test(`one of three coordinators without its database, seed ${seed}`, async (t) => {
        const postgres = await startPostgres()
        if ('skipReason' in postgres) return void t.pass('', { skip: postgres.skipReason })
        t.teardown(postgres.stop)
        t.comment(JSON.stringify(await runCutDatabaseRound(t, postgres, { seed })))
      })
      // Their coordinators end with the subtests.
      await t.test(`boxes with machines that wait for them, seed ${seed}`, async (t) => {
        t.comment(JSON.stringify(await runWarmRound(t, { seed, creates: 40 })))
      })
      await t.test(`the life of a box, seed ${seed}`, async (t) => {
        t.comment(JSON.stringify(await runLifeRound(t, { seed, mebibytes: 200, randomOperations: 22 })))
      })
    }
  })
}
