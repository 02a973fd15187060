// Detached commands outlive the agent: the next one finds each of them, and says of none what it does not know.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newId } from '../../../../shared/ids.ts'
import { isAlive, pidIn, waitUntil } from '../exec-app.ts'
import { agent, isNative, newHome, openAgent, type TestAgent, tryKill } from './support.ts'

/** Another agent on what this one left. */
async function restart(t: Test, before: TestAgent, options = {}) {
  await before.close()
  return openAgent(t, before.home, options)
}

const runnerOf = ({ dir }: TestAgent, processId: string): number =>
  Number(readFileSync(join(dir, processId, 'started'), 'utf8').split(' ')[2])

t.test('it runs on, its output is complete and its end is told', async (t) => {
  const first = await agent(t)
  const { processId, pid } = await first.start(
    'echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 6',
  )
  const second = await restart(t, first)
  t.equal(isAlive(pid), true)
  t.match(await second.status(processId), { running: true, pid, lost: false })
  writeFileSync(join(second.home, 'go'), '')
  t.match(await second.ended(processId), { status: 'exited', exitCode: 6 })
  t.match(await second.status(processId), { stdout: 'one\ntwo\n' })
})

t.test('one that ended while no agent was there', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('while [ ! -e go ]; do sleep 0.02; done; exit 143')
  await first.close()
  writeFileSync(join(first.home, 'go'), '')
  await waitUntil('it wrote its end down', () => readdirSync(join(first.dir, processId)).includes('exit'))
  const second = await openAgent(t, first.home)
  t.match(second.get(processId).exit, { status: 'exited', exitCode: 143, signal: null })
  const third = await restart(t, second)
  t.same(third.get(processId).exit, second.get(processId).exit)
})

t.test('how it was ended is still known', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.kill(processId)
  const second = await restart(t, first)
  t.match(second.get(processId).exit, { status: 'killed', signal: 'TERM' })
  t.match(await second.kill(processId), { wasRunning: false, signal: null })
})

t.test('an ending that was begun is brought to its end', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.close()
  // As an agent leaves it that is killed between the note and the signal.
  writeFileSync(join(first.dir, processId, 'kill'), `${Date.now()}\n`)
  const second = await openAgent(t, first.home)
  t.match(await second.ended(processId), { status: 'killed', signal: 'TERM' })
})

t.test('a time limit goes on', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('exec sleep 600', { timeoutSeconds: 1 })
  const second = await restart(t, first)
  t.match(await second.ended(processId), { status: 'timed_out', signal: 'TERM' })
})

t.test('the same start asked again starts nothing', async (t) => {
  const first = await agent(t)
  const processId = newId('process')
  const { pid } = await first.start('exec sleep 600', { processId })
  const second = await restart(t, first)
  t.equal((await second.start('exec sleep 600', { processId })).pid, pid)
  t.match(await second.refused('exec sleep 601', { processId }), { code: 'invalid_request' })
})

t.test('the order stays', async (t) => {
  const first = await agent(t)
  for (let number = 0; number < 5; number++) await first.start(`echo ${number}`)
  const before = await first.list()
  const second = await restart(t, first)
  t.same(
    (await second.list()).map(({ processId }) => processId),
    before.map(({ processId }) => processId),
  )
})

t.test('a runner that is killed takes the knowledge with it', async (t) => {
  const first = await agent(t)
  const { processId, pid } = await first.start('exec sleep 600')
  const other = await first.start('exec sleep 600')
  process.kill(runnerOf(first, processId), 'SIGKILL')
  t.match(await first.ended(processId), { status: 'lost', exitCode: null, signal: null, finishedAt: null })
  t.match(await first.status(processId), { running: false, lost: true, finishedAt: null })
  t.match(await first.status(other.processId), { running: true })
  t.match(await first.kill(processId), { wasRunning: false })
  t.equal(isAlive(pid), false, 'what is left of it can still be ended')
  const second = await restart(t, first)
  t.match(second.get(processId).exit, { status: 'lost' })
})

t.test('after a reboot what ran is lost, whoever has its pid now', async (t) => {
  const first = await agent(t)
  const running = await first.start('exec sleep 600')
  const ended = await first.start('exit 4')
  await first.ended(ended.processId)
  const second = await restart(t, first, { bootId: 'another' })
  t.match(second.get(running.processId).exit, { status: 'lost' })
  t.match(second.get(ended.processId).exit, { status: 'exited', exitCode: 4 })
})

t.test('a pid that is another’s by now is not taken for it', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('exec sleep 600')
  await first.close()
  const file = join(first.dir, processId, 'started')
  const [pid, , runner] = readFileSync(file, 'utf8').split(' ')
  tryKill(Number(pid))
  await waitUntil('the runner ended', () => !isAlive(Number(runner)))
  renameSync(join(first.dir, processId, 'exit'), join(first.dir, processId, 'exit.away'))
  // This process lives, and began at another time.
  writeFileSync(file, `${process.pid} 1 ${process.pid} 1\n`)
  const second = await openAgent(t, first.home)
  t.match(second.get(processId).exit, { status: 'lost' })
  t.match(await second.kill(processId), { wasRunning: false, signal: null })
})

t.test('an end that is written by half is none', async (t) => {
  const first = await agent(t)
  const { processId } = await first.start('exit 0')
  await first.ended(processId)
  await first.close()
  const file = join(first.dir, processId, 'exit')
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, 6))
  const second = await openAgent(t, first.home)
  t.match(second.get(processId).exit, { status: 'lost', exitCode: null })
})

t.test('a start that an agent was killed in begins never, or once', async (t) => {
  const home = newHome(t)
  const first = await openAgent(t, home)
  const processId = newId('process')
  const { pid } = await first.start('echo $$ >>starts; exec sleep 600', { processId })
  await pidIn(home, 'starts')
  await first.close()
  // The record without the proof that it began: as before the runner came to it.
  const never = newId('process')
  mkdirSync(join(first.dir, never))
  const meta = readFileSync(join(first.dir, processId, 'meta.json'), 'utf8').replace(processId, never)
  writeFileSync(join(first.dir, never, 'meta.json'), meta)
  // And one without even a record.
  mkdirSync(join(first.dir, newId('process')))
  const second = await openAgent(t, home)
  t.same(
    (await second.list()).map((one) => one.processId),
    [processId],
  )
  await waitUntil(
    'their folders are gone',
    () => readdirSync(second.dir).filter((one) => one[0] === 'p').length === 1,
  )
  t.match(await second.start('echo $$ >>again; exec sleep 600', { processId: never }), { processId: never })
  t.equal(readFileSync(join(home, 'starts'), 'utf8'), `${pid}\n`)
})

t.test('a second runner for the same id starts nothing', { skip: !isNative }, async (t) => {
  const { createRunner } = await import('../../../../agent/exec/detached/runner.ts')
  const first = await agent(t)
  const { processId } = await first.start('echo $$ >>starts; exec sleep 600')
  const runner = createRunner('native', null)
  const launch = { processId, dir: join(first.dir, processId), cwd: '/', env: {}, maxLogBytes: 65536 }
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
