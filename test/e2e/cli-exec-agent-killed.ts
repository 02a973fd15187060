// kill -9 of a box's agent while `box exec` runs.
import type { ChildProcess } from 'node:child_process'
import t, { type Test } from 'tap'
import { isNativeRunner } from '../agent/exec/detached/support.ts'
import { type BoxOptions, runBox } from '../cli/run-box.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const { url, key, box, exec, api } = sharedCoordinator

/** Kills the agent when stdout of the box command contains `text`, then calls `action`. */
const killAgentAt = (text: string, action: (child: ChildProcess) => unknown): BoxOptions => ({
  stdin: null,
  env: { BOXWOOD_API_KEY: key },
  onSpawn(child) {
    let output = ''
    const onData = async (chunk: Buffer) => {
      output += chunk
      if (!output.includes(text)) return
      child.stdout?.off('data', onData)
      const pid = findAgentPid(box.id)
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
      await action(child)
    }
    child.stdout?.on('data', onData)
  },
})
const getStatus = async (text: string) => {
  const { json } = await api('GET', `/boxes/${box.id}/commands?limit=5`)
  return json.commands.find(({ command }: { command: string }) => command.includes(text))?.status
}
const runExec = (command: string, options: BoxOptions) =>
  runBox(url, ['exec', box.hostname, '--', command], options)

t.test('a command without open stdin continues, and its output is complete', async (t: Test) => {
  let statusAfterRestart: string | undefined
  const result = await runExec('cat; echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3', {
    ...killAgentAt('one', async () => {
      await waitUntil('the agent has restarted', async () => (await exec('true')).exitCode === 0)
      statusAfterRestart = await getStatus('until [ -e go ]')
      await exec('touch go')
    }),
    stdin: '',
  })
  t.match(result, { code: 3, stdout: 'one\ntwo\n' })
  t.equal(statusAfterRestart, 'running', 'the history does not call it lost')
  t.equal(await getStatus('until [ -e go ]'), 'exited')
})

const skip = !isNativeRunner && 'the stdin ends with the agent'
t.test('a command that receives stdin is terminated, and box exec prints the reason', { skip }, async (t) => {
  const result = await runExec('cat; echo complete >result', {
    ...killAgentAt('one', () => undefined),
    onSpawn(child) {
      child.stdin?.write('one\n')
      killAgentAt('one', () => undefined).onSpawn?.(child)
    },
  })
  t.equal(result.code, 143)
  t.match(result.stderr, /restarted and lost a part of stdin/)
  t.match(await exec('test -e result'), { exitCode: 1 })
})
