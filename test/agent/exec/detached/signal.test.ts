// signal() sends a signal to the process group of a detached process, without terminating its tree.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readStartRecord } from '../../../../agent/exec/detached/record.ts'
import { isAlive, waitForPid } from '../support.ts'
import { createAgent, isNativeRunner, openAgent } from './support.ts'

t.test('the whole process group gets the signal, other groups do not', async (t) => {
  const { start, processes, waitForExit, home } = await createAgent(t)
  const { processId } = await start(
    `sh -c 'echo $$ >child; exec sleep 600' & setsid sh -c 'echo $$ >other; exec sleep 600' & wait`,
  )
  const [child, other] = await Promise.all([waitForPid(home, 'child'), waitForPid(home, 'other')])
  t.equal(processes.signal(processId, 'SIGTERM'), true)
  // Not a termination request: the shell runner reports an exit code.
  t.match(
    await waitForExit(processId),
    isNativeRunner ? { status: 'killed', signal: 'TERM' } : { status: 'exited', exitCode: 143 },
  )
  t.notOk(isAlive(child))
  t.ok(isAlive(other))
})

t.test('a process may handle the signal and continue', async (t) => {
  const { start, processes, getProcess, home } = await createAgent(t)
  const { processId } = await start(
    `trap 'echo $$ >handled' USR1; echo $$ >ready; while :; do sleep 0.05; done`,
  )
  await waitForPid(home, 'ready')
  t.equal(processes.signal(processId, 'SIGUSR1'), true)
  await waitForPid(home, 'handled')
  t.equal(getProcess(processId).exit, null)
})

t.test('an exited or unknown process gets no signal', async (t) => {
  const { start, processes, waitForExit } = await createAgent(t)
  const { processId } = await start('exit 3')
  await waitForExit(processId)
  t.equal(processes.signal(processId, 'SIGINT'), false)
  t.equal(processes.signal('p_0123456789abcdef01234567', 'SIGINT'), false)
})

t.test('another process with the same pid gets no signal', async (t) => {
  const first = await createAgent(t)
  const { processId, pid } = await first.start('exec sleep 600')
  await first.close()
  const record = readStartRecord(join(first.dir, processId))
  if (record === undefined) throw new Error('unreachable')
  const { command, runner } = record
  // As if the pid belonged to a process that started later.
  const line = [command.pid, command.startTime - 1, runner.pid, runner.startTime].join(' ')
  writeFileSync(join(first.dir, processId, 'started'), `${line}\n`)
  const second = await openAgent(t, first.home)
  t.equal(second.processes.signal(processId, 'SIGKILL'), false)
  t.ok(isAlive(pid))
})
