// box ps and box logs with a real box that is stopped, by a suspend and with the coordinator.
import t from 'tap'
import { type BoxOptions, runBox } from '../cli/run-box.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('logs -f reports the stop of the box; ps and logs work while it is stopped', async (t) => {
  const { coordinator, clientProxy, box: firstBox, key, restart } = await startProxiedCoordinator(t)
  const { id, hostname: name } = firstBox
  const box = (args: string[], options: BoxOptions = {}) =>
    runBox(clientProxy.url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
  /** Follows a new process, and calls `stop` when its first output has arrived. */
  const followUntilStop = async (stop: () => Promise<unknown>) => {
    await box(['exec', '-d', name, '--', 'seq 1 3; sleep 1000'])
    await waitUntil('the output', async () => (await box(['logs', name])).stdout === '1\n2\n3\n')
    let stopped: Promise<unknown> = Promise.resolve()
    const result = await box(['logs', '-f', '-n', '2', name], {
      onSpawn: (child) =>
        child.stdout?.once('data', () => {
          stopped = stop()
        }),
    })
    await stopped
    return result
  }

  const suspended = await followUntilStop(() => box(['stop', name]))
  t.match(suspended, { code: 143, stdout: '2\n3\n' })
  t.match(
    suspended.stderr,
    new RegExp(`box: ${name} was stopped at \\d{4}-.*Z \\(suspended\\), which terminated the process\\.\\n$`),
  )
  t.match(await box(['ps', name]), {
    stdout: /^p_[0-9a-f]{24} +\d+ +killed TERM .* seq 1 3; sleep 1000$/m,
    stderr: `box: ${name} is not running. These processes are from the command history.\n`,
  })
  t.match(await box(['logs', '-n', '1', name]), { code: 0, stdout: '3\n', stderr: /the stored output/ })
  t.match(await box(['logs', '-f', name]), {
    code: 143,
    stdout: '1\n2\n3\n',
    stderr: /the process is not running: killed TERM/,
  })

  await box(['wake', name])
  // As Ctrl-C in the terminal of the coordinator.
  const coordinatorStopped = await followUntilStop(() => restart('SIGINT'))
  t.match(coordinatorStopped, { code: 143, stdout: '2\n3\n' })
  t.match(coordinatorStopped.stderr, /was stopped at .* \(the coordinator was stopped\), which terminated/)
  await coordinator.waitForState(id, 'running')
})
