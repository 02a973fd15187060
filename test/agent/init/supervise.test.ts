// The supervisor of a machine's agent: restarts, stops, and the return to the previous build when a new one fails.
import { once } from 'node:events'
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { waitUntil } from '../../support/wait-until.ts'
import {
  type Behaviour,
  createPrefix,
  isRunning,
  type Prefix,
  runScript,
  stop,
  waitForStart,
} from './fake-builds.ts'

/** Whether a process has the entry in its environment. */
function hasProcess(entry: string): boolean {
  return readdirSync('/proc').some((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(entry)
    } catch {
      return false
    }
  })
}

/** A machine whose build `old` has connected, and whose current build is `new`. */
function createUpgraded(t: Test, behaviour: Behaviour, oldBehaviour: Behaviour = 'connects'): Prefix {
  const prefix = createPrefix(t)
  prefix.addBuild('old', oldBehaviour)
  prefix.addBuild('new', behaviour)
  prefix.link('previous', 'old')
  prefix.link('current', 'new')
  writeFileSync(join(prefix.state, 'connected-build'), 'old 1\n')
  return prefix
}

const waitForConnected = (prefix: Prefix, build: string) =>
  waitUntil(`build ${build} has connected`, () =>
    prefix.readState('connected-build')?.startsWith(`${build} `),
  )

/** @param start index in prefix.listStarts() of an agent that records signals */
const waitUntilReady = (prefix: Prefix, start: number) =>
  waitUntil(`agent ${start} handles signals`, () => {
    const pid = prefix.listStarts()[start]?.pid
    return pid !== undefined && prefix.readState('ready') === String(pid)
  })

t.test('restarts a killed agent, and stops it on TERM', async (t) => {
  const prefix = createPrefix(t)
  prefix.addBuild('one', 'connects')
  prefix.link('current', 'one')
  const supervisor = runScript(t, 'supervise.sh', [prefix.prefix])
  await waitForStart(prefix, 'one')
  process.kill(prefix.listStarts()[0]?.pid ?? 0, 'SIGKILL')
  await waitForStart(prefix, 'one', 2)
  await stop(supervisor)
  t.equal(supervisor.exitCode, 0)
  t.same(
    prefix.listStarts().map(({ pid }) => isRunning(pid)),
    [false, false],
  )
})

t.test('starts the build to which current points after a restart of the agent', async (t) => {
  const prefix = createPrefix(t)
  prefix.addBuild('old', 'connects')
  prefix.addBuild('new', 'connects')
  prefix.link('current', 'old')
  runScript(t, 'supervise.sh', [prefix.prefix])
  await waitForConnected(prefix, 'old')
  prefix.link('previous', 'old')
  symlinkSync('versions/new', join(prefix.prefix, 'current.new'))
  renameSync(join(prefix.prefix, 'current.new'), join(prefix.prefix, 'current'))
  process.kill(prefix.listStarts()[0]?.pid ?? 0, 'SIGTERM')
  await waitForConnected(prefix, 'new')
  t.same(prefix.listBuilds(), ['old', 'new'])
  t.equal(prefix.readState('failed-build'), null)
})

t.test('stops the agent that a killed supervisor has left', async (t) => {
  const prefix = createPrefix(t)
  prefix.addBuild('one', 'records signals')
  prefix.link('current', 'one')
  const killed = runScript(t, 'supervise.sh', [prefix.prefix])
  await waitUntilReady(prefix, 0)
  const exited = once(killed, 'exit')
  killed.kill('SIGKILL')
  await exited
  const [first] = prefix.listStarts()
  t.ok(isRunning(first?.pid ?? 0), 'the agent continues')
  runScript(t, 'supervise.sh', [prefix.prefix])
  await waitForStart(prefix, 'one', 2)
  t.notOk(isRunning(first?.pid ?? 0))
  t.equal(prefix.readState('signal'), 'SIGHUP', 'its terminal sessions continue')
})

t.test('returns to the previous build when the new one exits twice', async (t) => {
  const prefix = createUpgraded(t, 'exits')
  runScript(t, 'supervise.sh', [prefix.prefix])
  await waitForConnected(prefix, 'old')
  await waitForStart(prefix, 'old')
  t.same(prefix.listBuilds(), ['new', 'new', 'old'])
  t.match(prefix.readState('failed-build'), /^new@\d+\.\d+\n$/)
  t.equal(prefix.readLink('current'), 'versions/old')
  t.equal(prefix.readLink('previous'), null)
})

for (const behaviour of ['never connects', 'ignores HUP'] as const) {
  t.test(`returns to the previous build when the new one ${behaviour}`, async (t) => {
    const prefix = createUpgraded(t, behaviour)
    const supervisor = runScript(t, 'supervise.sh', [prefix.prefix], { trialSeconds: 0.5 })
    await waitForStart(prefix, 'old')
    t.same(prefix.listBuilds(), ['new', 'old'])
    t.match(prefix.readState('failed-build'), /^new@/)
    t.notOk(isRunning(prefix.listStarts()[0]?.pid ?? 0), 'the new agent was terminated first')
    await waitUntil('the previous build has connected again', () =>
      prefix.readState('connected-build')?.startsWith(`old ${prefix.listStarts()[1]?.pid}\n`),
    )
    await stop(supervisor)
    t.match(prefix.readState('failed-build'), /^new@/)
  })
}

t.test('the agent of a failed trial gets HUP, which keeps terminal sessions', async (t) => {
  const prefix = createUpgraded(t, 'records signals', 'records signals')
  const supervisor = runScript(t, 'supervise.sh', [prefix.prefix])
  await waitUntilReady(prefix, 0)
  // The trial is over.
  supervisor.kill('SIGALRM')
  await waitUntilReady(prefix, 1)
  t.equal(prefix.readState('signal'), 'SIGHUP')
  await stop(supervisor)
  t.equal(prefix.readState('signal'), 'SIGTERM', 'the supervisor is stopped')
  t.same(prefix.listBuilds(), ['new', 'old'])
})

t.test('keeps a build that has connected, also when its agent exits later', async (t) => {
  const prefix = createUpgraded(t, 'connects and exits')
  runScript(t, 'supervise.sh', [prefix.prefix], { trialSeconds: 0.5 })
  await waitForStart(prefix, 'new', 4)
  t.same(new Set(prefix.listBuilds()), new Set(['new']))
  t.equal(prefix.readLink('current'), 'versions/new')
  t.equal(prefix.readLink('previous'), 'versions/old', 'the previous build is kept')
})

t.test('an agent that is killed once during the trial is started again', async (t) => {
  const prefix = createUpgraded(t, 'connects when the file online exists')
  runScript(t, 'supervise.sh', [prefix.prefix])
  await waitForStart(prefix, 'new')
  process.kill(prefix.listStarts()[0]?.pid ?? 0, 'SIGKILL')
  await waitForStart(prefix, 'new', 2)
  writeFileSync(join(prefix.state, 'online'), '')
  await waitForConnected(prefix, 'new')
  t.same(prefix.listBuilds(), ['new', 'new'])
})

t.test('when the previous build does not connect either, the new one has not failed', async (t) => {
  const prefix = createUpgraded(t, 'never connects', 'connects when the file online exists')
  runScript(t, 'supervise.sh', [prefix.prefix], { trialSeconds: 0.5 })
  await waitForStart(prefix, 'old')
  t.match(prefix.readState('failed-build'), /^new@/)
  await waitUntil('the failure is withdrawn', () => prefix.readState('failed-build') === null)
  const [, old] = prefix.listStarts()
  writeFileSync(join(prefix.state, 'online'), '')
  await waitUntil(
    'the previous build connects',
    () => prefix.readState('connected-build') === `old ${old?.pid}\n`,
  )
  t.same(prefix.listBuilds(), ['new', 'old'], 'no build was started again')
})

t.test('the first build of a machine has no trial', async (t) => {
  const prefix = createPrefix(t)
  prefix.addBuild('one', 'exits')
  prefix.link('current', 'one')
  runScript(t, 'supervise.sh', [prefix.prefix], { trialSeconds: 0.5 })
  await waitForStart(prefix, 'one', 4)
  t.equal(prefix.readLink('current'), 'versions/one')
  t.equal(prefix.readState('failed-build'), null)
})

t.test('a supervisor that is stopped during a trial leaves no process', async (t) => {
  const prefix = createUpgraded(t, 'never connects')
  const supervisor = runScript(t, 'supervise.sh', [prefix.prefix], { env: { TEST_MARKER: prefix.prefix } })
  await waitForStart(prefix, 'new')
  await stop(supervisor)
  await waitUntil('no process is left', () => !hasProcess(`TEST_MARKER=${prefix.prefix}\0`))
  t.equal(prefix.readLink('current'), 'versions/new', 'the trial is not over')
})

t.test('the init of a local box starts the previous build until the failure is removed', async (t) => {
  const prefix = createUpgraded(t, 'exits')
  const args = [process.execPath, '--single-threaded-gc', join(prefix.prefix, 'current/agent.mjs')]
  const env = { BOXWOOD_STATE: prefix.state, HOME: prefix.prefix }
  runScript(t, 'init.sh', args, { env })
  await waitForConnected(prefix, 'old')
  await waitForStart(prefix, 'old')
  t.same(prefix.listBuilds(), ['new', 'new', 'old'])
  process.kill(prefix.listStarts()[2]?.pid ?? 0, 'SIGKILL')
  await waitForStart(prefix, 'old', 2)
  t.equal(prefix.readLink('current'), 'versions/new', 'the links belong to the coordinator')
  rmSync(join(prefix.state, 'failed-build'))
  process.kill(prefix.listStarts()[3]?.pid ?? 0, 'SIGKILL')
  await waitForStart(prefix, 'new', 3)
  t.pass('the new build is tried again')
})
