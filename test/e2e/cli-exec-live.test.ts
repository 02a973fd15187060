// box exec over connection failures and a kill of the coordinator, and parallel commands with the default limits.
import t from 'tap'
import { type BoxOptions, runBoxForBytes } from '../cli/run-box.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { createSeededRandom, randomBuffer } from '../support/random.ts'
import { waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024
const OUTAGE_MESSAGES =
  /box: (disconnected from the command\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g

const {
  clientProxy,
  agentProxy,
  box: { hostname: name },
  key,
  restart,
  // The defaults.
} = await startProxiedCoordinator(t, limitsEnv({}))
const boxForBytes = (args: string[], options: BoxOptions = {}) =>
  runBoxForBytes(clientProxy.url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
const exec = async (command: string, options: BoxOptions = {}) => {
  const { code, stdout, stderr } = await boxForBytes(['exec', name, '--', command], options)
  return { code, stdout: stdout.toString(), stderr: stderr.toString().replace(OUTAGE_MESSAGES, '') }
}

t.test('no byte is lost over resets of client and tunnel, and a killed coordinator', async (t) => {
  const stdin = randomBuffer(48 * MiB, createSeededRandom(2))
  let received = 0
  const causeFailures = async () => {
    const waitForOutput = (bytes: number) => waitUntil(`${bytes} bytes of output`, () => received >= bytes)
    await waitForOutput(4 * MiB)
    clientProxy.reset()
    await waitForOutput(12 * MiB)
    agentProxy.reset()
    await waitForOutput(20 * MiB)
    await restart()
    await waitForOutput(28 * MiB)
    clientProxy.reset()
    agentProxy.reset()
  }
  let failures: Promise<void> = Promise.resolve()
  const result = await boxForBytes(['exec', name, '--', 'cat; exit 9'], {
    stdin,
    onSpawn(child) {
      child.stdout?.on('data', (chunk: Buffer) => {
        received += chunk.length
      })
      failures = causeFailures()
      failures.catch(() => child.kill())
    },
  })
  await failures
  t.equal(result.code, 9, result.stderr.toString())
  t.equal(result.stdout.length, stdin.length)
  t.ok(result.stdout.equals(stdin))
})

t.test('ten commands of one key at the same time', async (t) => {
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, index) => exec('cat; sleep 0.2; exit 5', { stdin: `${index}` })),
  )
  t.same(
    results,
    results.map((_, index) => ({ code: 5, stdout: String(index), stderr: '' })),
  )
})
