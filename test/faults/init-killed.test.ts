// kill -9 of a box's init process: the machine is restarted long before the grace period of disconnected agents ends.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { killIfAlive } from '../agent/exec/detached/support.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Field 4 of proc_pid_stat(5). The name in field 2 may contain spaces. */
const readParentPid = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1])

t.test('a machine whose init is killed is degraded and restarts', async (t) => {
  const { api, box, exec } = await startCoordinatorWithBox(t, {
    lifecycle: { disconnectGraceMs: 1_000_000 },
  })
  await exec('echo kept > note')
  const agentPid = await waitUntil('the agent runs', () => findAgentPid(box.id))
  const initPid = readParentPid(agentPid)
  t.ok(initPid > 1)
  process.kill(initPid, 'SIGKILL')
  // Without a PID namespace the agent outlives its init.
  killIfAlive(agentPid)
  await waitUntil('the box is running again', async () => {
    const { json } = await api('GET', `/boxes/${box.id}`)
    const states = json.events.map(({ toState }: { toState: string }) => toState)
    return json.box.observedState === 'running' && states[1] === 'degraded'
  })
  t.match(await exec('cat note'), { stdout: 'kept\n' })
})
