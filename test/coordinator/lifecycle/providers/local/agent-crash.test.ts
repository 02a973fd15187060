// A killed agent.
import { findPidsByArgument, uniqueSleepSeconds } from './find-processes.ts'
import { startBox, testEachLevel, waitUntil } from './support.ts'

testEachLevel('restarts a killed agent and leaves other processes running', async (test, level) => {
  const otherSeconds = uniqueSleepSeconds()
  const agentSeconds = uniqueSleepSeconds()
  const script = `[ -e "$HOME/started" ] || { : >"$HOME/started"; setsid sleep ${otherSeconds} & }
exec sleep ${agentSeconds}`
  const { provider, spec } = await startBox(test, { level, script })
  await waitUntil(() => findPidsByArgument(agentSeconds).length === 1, 'the agent runs')
  await waitUntil(() => findPidsByArgument(otherSeconds).length === 1, 'the other process runs')
  const [agentPid = 0] = findPidsByArgument(agentSeconds)
  const otherPids = findPidsByArgument(otherSeconds)
  process.kill(agentPid, 'SIGKILL')
  await waitUntil(
    () => findPidsByArgument(agentSeconds).some((pid) => pid !== agentPid),
    'the init has restarted the agent',
  )
  test.same(findPidsByArgument(otherSeconds), otherPids, 'the other process is still running')
  test.equal(await provider.inspect(spec.boxId), 'running')
})
