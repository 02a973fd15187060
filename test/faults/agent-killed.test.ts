// kill -9 of a box's agent: its requests fail immediately, and everything else on the box continues.
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('a killed agent restarts immediately, and the box keeps running', async (t) => {
  const { exec, boxRequest, box, api } = await startCoordinatorWithBox(t)
  await exec('echo kept > note; (sleep 1000 >/dev/null 2>&1 & echo $! > bystander)')
  for (let round = 0; round < 3; round++) {
    const pid = await waitUntil('the agent runs', async () => findAgentPid(box.id))
    const interrupted = boxRequest('POST', '/exec', { command: `touch started${round}; sleep 20` })
    await waitUntil('the command started', async () => (await exec(`test -e started${round}`)).exitCode === 0)
    process.kill(pid, 'SIGKILL')
    t.match(await interrupted, { status: 502, json: { ok: false, error: { code: 'box_unreachable' } } })
    // The next request waits for the restarting agent instead of failing.
    t.match(await exec('kill -0 $(cat bystander) && cat note'), { stdout: 'kept\n' })
    t.not(findAgentPid(box.id), pid)
  }
  t.match((await api('GET', `/boxes/${box.id}`)).json, {
    box: { observedState: 'running' },
    pausesSurvived: 0,
  })
})
