// Detached processes survive a restart of the agent. The new agent finds them all and never guesses an exit status.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readMetadata } from '../../../../agent/exec/detached/record.ts'
import { startWallTimer } from '../../../../agent/running-clock.ts'
import { newId } from '../../../../shared/ids.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { isAlive, waitForPid } from '../support.ts'
import { createAgent, createHome, isNativeRunner, killIfAlive, openAgent, type TestAgent } from './support.ts'

async function restart(t: Test, agent: TestAgent, options = {}) {
  await agent.close()
  return openAgent(t, agent.home, options)
}

const readRunnerPid = ({ dir }: TestAgent, processId: string): number =>
  Number(readFileSync(join(dir, processId, 'started'), 'utf8').split(' ')[2])

t.test('a process continues, with complete output and exit status', async (t) => {
  const first = await createAgent(t)
  const { processId, pid } = await first.start(
    'echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 6',
  )
  const second = await restart(t, first)
  t.equal(isAlive(pid), true)
  t.match(await second.getStatus(processId), { running: true, pid, lost: false })
  writeFileSync(join(second.home, 'go'), '')
  t.match(await second.waitForExit(processId), { status: 'exited', exitCode: 6 })
  t.match(await second.getStatus(processId), { stdout: 'one\ntwo\n' })
})

t.test('reports the exit of a process that exited while no agent ran', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('while [ ! -e go ]; do sleep 0.02; done; exit 143')
  await first.close()
  writeFileSync(join(first.home, 'go'), '')
  await waitUntil('the exit is recorded', () => readdirSync(join(first.dir, processId)).includes('exit'))
  const second = await openAgent(t, first.home)
  t.match(second.getProcess(processId).exit, { status: 'exited', exitCode: 143, signal: null })
  const third = await restart(t, second)
  t.same(third.getProcess(processId).exit, second.getProcess(processId).exit)
})

t.test('a killed process keeps the status killed', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.kill(processId)
  const second = await restart(t, first)
  t.match(second.getProcess(processId).exit, { status: 'killed', signal: 'TERM' })
  t.match(await second.kill(processId), { wasRunning: false, signal: null })
})

t.test('completes a termination that the previous agent started', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.close()
  // As if the agent had been killed after writing the marker and before sending the signal.
  writeFileSync(join(first.dir, processId, 'kill'), `${Date.now()}\n`)
  const second = await openAgent(t, first.home)
  t.match(await second.waitForExit(processId), { status: 'killed', signal: 'TERM' })
})

t.test('enforces the time limit of a process started before the restart', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('exec sleep 600', { timeoutSeconds: 1 })
  const second = await restart(t, first)
  t.match(await second.waitForExit(processId), { status: 'timed_out', signal: 'TERM' })
})

t.test('the time limit does not count a freeze before the restart', async (t) => {
  const HOUR_MS = 3_600_000
  const inFuture = (ms: number) => ({ clock: { now: () => Date.now() + ms } })
  let notify: ((frozenMs: number) => void) | undefined
  const runningClock = {
    startTimer: startWallTimer,
    onThaw(listener: (frozenMs: number) => void) {
      notify = listener
      return () => undefined
    },
  }
  const first = await createAgent(t, { runningClock })
  const { processId, pid } = await first.start('exec sleep 600', { timeoutSeconds: 60 })
  const readDeadline = () => readMetadata(join(first.dir, processId))?.deadline ?? 0
  const deadline = readDeadline()
  notify?.(HOUR_MS)
  await waitUntil('the deadline is extended', () => readDeadline() === deadline + HOUR_MS)
  const second = await restart(t, first, inFuture(HOUR_MS))
  t.match(await second.getStatus(processId), { running: true, pid })
  const third = await restart(t, second, inFuture(2 * HOUR_MS))
  // The shell runner records no signal, and the exit has an earlier time than the request of an agent with a clock in the future.
  const exit = isNativeRunner ? { signal: 'TERM' } : { exitCode: 128 + 15 }
  t.match(await third.waitForExit(processId), exit, 'the extended limit applies')
})

t.test('a repeated start request does not start the command again', async (t) => {
  const first = await createAgent(t)
  const processId = newId('process')
  const { pid } = await first.start('exec sleep 600', { processId })
  const second = await restart(t, first)
  t.equal((await second.start('exec sleep 600', { processId })).pid, pid)
  t.match(await second.expectStartError('exec sleep 601', { processId }), { code: 'idempotency_key_reused' })
})

t.test('keeps the order of the list', async (t) => {
  const first = await createAgent(t)
  for (let number = 0; number < 5; number++) await first.start(`echo ${number}`)
  const before = await first.list()
  const second = await restart(t, first)
  t.same(
    (await second.list()).map(({ processId }) => processId),
    before.map(({ processId }) => processId),
  )
})

t.test('a process is lost when its runner is killed', async (t) => {
  const first = await createAgent(t)
  const { processId, pid } = await first.start('exec sleep 600')
  const other = await first.start('exec sleep 600')
  process.kill(readRunnerPid(first, processId), 'SIGKILL')
  t.match(await first.waitForExit(processId), {
    status: 'lost',
    exitCode: null,
    signal: null,
    finishedAt: null,
  })
  t.match(await first.getStatus(processId), { running: false, lost: true, finishedAt: null })
  t.match(await first.getStatus(other.processId), { running: true })
  t.match(await first.kill(processId), { wasRunning: false })
  t.equal(isAlive(pid), false, 'its processes can still be terminated')
  const second = await restart(t, first)
  t.match(second.getProcess(processId).exit, { status: 'lost' })
})

t.test('after a reboot, processes that ran are lost although their pids exist', async (t) => {
  const first = await createAgent(t)
  const running = await first.start('exec sleep 600')
  const exited = await first.start('exit 4')
  await first.waitForExit(exited.processId)
  const second = await restart(t, first, { bootId: 'another' })
  t.match(second.getProcess(running.processId).exit, { status: 'lost' })
  t.match(second.getProcess(exited.processId).exit, { status: 'exited', exitCode: 4 })
})

t.test('a process is lost when its pid was reused', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.close()
  const file = join(first.dir, processId, 'started')
  const [pid, , runner] = readFileSync(file, 'utf8').split(' ')
  killIfAlive(Number(pid))
  await waitUntil('the runner has exited', () => !isAlive(Number(runner)))
  renameSync(join(first.dir, processId, 'exit'), join(first.dir, processId, 'exit.away'))
  // The pid of this process, which runs, with another start time.
  writeFileSync(file, `${process.pid} 1 ${process.pid} 1\n`)
  const second = await openAgent(t, first.home)
  t.match(second.getProcess(processId).exit, { status: 'lost' })
  t.match(await second.kill(processId), { wasRunning: false, signal: null })
})

t.test('ignores a truncated exit record', async (t) => {
  const first = await createAgent(t)
  const { processId } = await first.start('exit 0')
  await first.waitForExit(processId)
  await first.close()
  const file = join(first.dir, processId, 'exit')
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, 6))
  const second = await openAgent(t, first.home)
  // The runner may not have exited yet.
  await second.waitForExit(processId)
  t.match(second.getProcess(processId).exit, { status: 'lost', exitCode: null })
})

t.test('an interrupted start runs the command at most once', async (t) => {
  const home = createHome(t)
  const first = await openAgent(t, home)
  const processId = newId('process')
  const { pid } = await first.start('echo $$ >>starts; exec sleep 600', { processId })
  await waitForPid(home, 'starts')
  await first.close()
  // Metadata without the file `started`: the agent was killed before the runner started the command.
  const interruptedId = newId('process')
  mkdirSync(join(first.dir, interruptedId))
  const meta = readFileSync(join(first.dir, processId, 'meta.json'), 'utf8').replace(processId, interruptedId)
  writeFileSync(join(first.dir, interruptedId, 'meta.json'), meta)
  // An empty directory: the agent was killed before it wrote the metadata.
  mkdirSync(join(first.dir, newId('process')))
  const second = await openAgent(t, home)
  t.same(
    (await second.list()).map((entry) => entry.processId),
    [processId],
  )
  await waitUntil(
    'both directories are deleted',
    () => readdirSync(second.dir).filter((name) => name[0] === 'p').length === 1,
  )
  t.match(await second.start('exec sleep 600', { processId: interruptedId }), { processId: interruptedId })
  t.equal(readFileSync(join(home, 'starts'), 'utf8'), `${pid}\n`)
})

t.test('more runners of one process do not start the command again', { skip: !isNativeRunner }, async (t) => {
  const { createRunner } = await import('../../../../agent/exec/detached/runner.ts')
  const first = await createAgent(t)
  const { processId } = await first.start('echo $$ >>starts; exec sleep 600')
  const runner = createRunner('native', null)
  const launch = {
    ...{ processId, dir: join(first.dir, processId), cwd: '/', env: {}, maxLogBytes: 65536 },
    mode: 'detached' as const,
  }
  await Promise.all(
    Array.from({ length: 10 }, () =>
      runner.launch({ ...launch, command: `echo again >>${first.home}/starts` }),
    ),
  )
  const lines = readFileSync(join(first.home, 'starts'), 'utf8').trim().split('\n')
  t.equal(lines.length, 1)
  t.same(
    readdirSync(join(first.dir, processId)).filter((name) => name.startsWith('started')),
    ['started'],
  )
})
