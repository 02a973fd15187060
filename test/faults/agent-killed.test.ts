// kill -9 of a box's agent: what ran through it fails at once, everything else on the box goes on.
import t from 'tap'
import { edgeBox } from '../e2e/edge-box.ts'
import { agentPid } from '../support/agent-pid.ts'
import { waitUntil } from '../support/coordinator-process.ts'

t.test('an agent that is killed is back at once, and its box never stopped', async (t) => {
  const { exec, ask, box, api } = await edgeBox(t)
  await exec('echo kept > note; (sleep 1000 >/dev/null 2>&1 & echo $! > bystander)')
  for (let round = 0; round < 3; round++) {
    const pid = await waitUntil('the agent runs', async () => agentPid(box.id))
    const lost = ask('POST', '/exec', { command: `touch began${round}; sleep 20` })
    await waitUntil('it began', async () => (await exec(`test -e began${round}`)).exitCode === 0)
    process.kill(pid, 'SIGKILL')
    t.match(await lost, { status: 502, json: { ok: false, error: { code: 'box_unreachable' } } })
    // The very next request waits for the agent that is coming back, instead of failing.
    t.match(await exec('kill -0 $(cat bystander) && cat note'), { stdout: 'kept\n' })
    t.not(agentPid(box.id), pid)
  }
  t.match((await api('GET', `/boxes/${box.id}`)).json, {
    box: { observedState: 'running' },
    pausesSurvived: 0,
  })
})
