// A killed agent is restarted by the box's init, and the other processes of the box keep running.
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { startBox } from './support.ts'

testEachLevel('restarts a killed agent and leaves other processes running', async (test, level) => {
  const otherSeconds = uniqueSleepSeconds()
  const agentSeconds = uniqueSleepSeconds()
  const script = `[ -e "$HOME/started" ] || { : >"$HOME/started"; setsid sleep ${otherSeconds} & }
exec sleep ${agentSeconds}`
  const { provider, spec } = await startBox(test, { level, script })
  await waitUntil('the agent runs', () => findSleepPids(agentSeconds).length === 1)
  await waitUntil('the other process runs', () => findSleepPids(otherSeconds).length === 1)
  const [agentPid = 0] = findSleepPids(agentSeconds)
  const otherPids = findSleepPids(otherSeconds)
  process.kill(agentPid, 'SIGKILL')
  await waitUntil('the init has restarted the agent', () =>
    findSleepPids(agentSeconds).some((pid) => pid !== agentPid),
  )
  test.same(findSleepPids(otherSeconds), otherPids, 'the other process is still running')
  test.equal(await provider.inspect(spec.boxId), 'running')
})
