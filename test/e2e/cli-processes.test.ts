// box logs -f over connection failures and kills of the agent and the coordinator, and the stored output.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type BoxOptions, runBoxForBytes } from '../cli/run-box.ts'
import {
  createWriterCommand,
  EXIT_CODE,
  expectedOutput,
  NOISE_BYTES,
  STDOUT_BYTES_PER_BLOCK,
} from '../support/chaos/writer-command.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { createSeededRandom, randomBuffer } from '../support/random.ts'
import { waitUntil } from '../support/wait-until.ts'

const MEBIBYTES = 20
/** The last of them, which the command writes after the last failure. */
const HELD_MEBIBYTES = 4
const OUTAGE_MESSAGES =
  /box: (disconnected from the process\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

t.test('logs -f and output, with connection failures and kills', async (t) => {
  const {
    coordinator,
    clientProxy,
    agentProxy,
    box: firstBox,
    key,
    restart,
  } = await startProxiedCoordinator(t)
  const { id, hostname: name } = firstBox
  const boxForBytes = (args: string[], options: BoxOptions = {}) =>
    runBoxForBytes(clientProxy.url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
  const box = async (...args: string[]) => {
    const { code, stdout, stderr } = await boxForBytes(args)
    return { code, stdout: stdout.toString(), stderr: stderr.toString() }
  }

  const localDir = t.testdir({})
  const noise = randomBuffer(NOISE_BYTES, createSeededRandom(1))
  writeFileSync(join(localDir, 'noise'), noise)
  t.match(await box('cp', join(localDir, 'noise'), `${name}:`), { code: 0, stderr: '' })
  const started = await box('exec', '-d', name, '--', createWriterCommand(MEBIBYTES, HELD_MEBIBYTES, 0.1))
  t.match(started, { code: 0, stderr: '' })
  const processId = started.stdout.trim()
  const expected = expectedOutput(MEBIBYTES, noise)

  await t.test('logs -f prints every byte once and exits with the exit code, despite failures', async (t) => {
    let received = 0
    const waitForOutput = (cause: string) => {
      // On a slow machine the command may have written all but the held blocks before the last failure.
      const wanted = Math.min(
        received + STDOUT_BYTES_PER_BLOCK,
        (MEBIBYTES - HELD_MEBIBYTES) * STDOUT_BYTES_PER_BLOCK,
      )
      return waitUntil(`output after ${cause}`, async () => received >= wanted)
    }
    async function causeFailures(): Promise<void> {
      await waitForOutput('the start')
      clientProxy.reset()
      await waitForOutput('a reset of the client connection')
      agentProxy.reset()
      await waitForOutput('a reset of the tunnel')
      const pid = findAgentPid(id)
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
      await waitForOutput('a kill of the agent')
      await restart()
      await waitForOutput('a kill of the coordinator')
      clientProxy.reset()
      await waitForOutput('a second reset of the client connection')
      await waitUntil('the command may write the held blocks', async () => {
        const response = await coordinator.exec(name, 'touch finish').catch(() => undefined)
        return response?.exitCode === 0
      })
    }
    let failures: Promise<void> = Promise.resolve()
    const followed = await boxForBytes(['logs', '-f', name, processId], {
      onSpawn(child) {
        child.stdout?.on('data', (chunk: Buffer) => {
          received += chunk.length
        })
        failures = causeFailures()
        failures.catch(() => child.kill())
      },
    })
    await failures
    t.equal(followed.stdout.length, MEBIBYTES * STDOUT_BYTES_PER_BLOCK)
    t.equal(sha256(followed.stdout), expected.stdout)
    const stderr = followed.stderr.toString('latin1').replace(OUTAGE_MESSAGES, '')
    t.equal(sha256(Buffer.from(stderr, 'latin1')), expected.stderr)
    t.equal(followed.code, EXIT_CODE)

    const tail = await boxForBytes(['logs', '--bytes', '100', name, processId])
    t.ok(tail.stdout.equals(followed.stdout.subarray(-100)), 'its tail, without -f')
    t.equal(tail.code, 0)

    await waitUntil('its record is complete', async () => {
      const { commands } = await coordinator.sendJson('GET', `/api/v1/boxes/${id}/commands?mode=detached`)
      return commands[0]?.status === 'exited' && commands[0]
    })
    const stored = await boxForBytes(['output', name, processId])
    t.equal(stored.code, 0)
    t.ok(stored.stdout.length > 0 && followed.stdout.subarray(-stored.stdout.length).equals(stored.stdout))
    t.match(stored.stderr.toString(), /^box: \d+ bytes of stdout before this point are missing/)
  })
})
