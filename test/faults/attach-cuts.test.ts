// 256 MiB through stdin and stdout of `box exec`, while client, tunnel and coordinator are cut and the reader stops.
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { findAgentPid } from '../support/find-agent-process.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024
const TOTAL_BYTES = 256 * MiB
const FAULTS = 8
/** Between two faults. */
const PART_BYTES = Math.floor(TOTAL_BYTES / (FAULTS + 1))
/** Copies stdin to stdout. After each part, the command waits until the test has caused a fault. */
const COMMAND = `
i=0
while [ $i -lt ${FAULTS} ]; do
  head -c ${PART_BYTES}
  until [ -e go-$i ]; do sleep 0.05; done
  i=$((i+1))
done
cat
exit 7`
/** A process of Node needs some 60 MiB, and with all transferred bytes more than 310. */
const MAX_RESIDENT_MIB = 280

const readPeakMiB = (pid: number) =>
  Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

t.test('every byte arrives once, in both directions', async (t) => {
  const { coordinator, clientProxy, agentProxy, box, key, restart } = await startProxiedCoordinator(t)

  const cli = spawn(
    process.execPath,
    [join(PROJECT_DIR, 'cli/main.ts'), 'exec', box.hostname, '--', COMMAND],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        BOXWOOD_URL: clientProxy.url,
        BOXWOOD_API_KEY: key,
      },
    },
  )
  t.teardown(() => cli.kill('SIGKILL'))
  const exited = once(cli, 'close')
  const sent = createHash('sha256')
  async function* createInput() {
    const block = randomBytes(MiB)
    for (let i = 0; i < TOTAL_BYTES / MiB; i++) {
      block.writeUInt32LE(i)
      const chunk = Buffer.from(block)
      sent.update(chunk)
      yield chunk
    }
  }
  Readable.from(createInput()).pipe(cli.stdin)
  const received = createHash('sha256')
  let receivedBytes = 0
  cli.stdout.on('data', (chunk) => {
    received.update(chunk)
    receivedBytes += chunk.length
  })
  // box exec prints when it has been disconnected for seconds.
  let messages = ''
  cli.stderr.on('data', (chunk) => {
    messages += chunk
  })
  const waitForBytes = (count: number) =>
    waitUntil(
      `${count} bytes arrive`,
      () => {
        if (cli.exitCode !== null)
          throw new Error(`box exec exited with ${cli.exitCode} after ${receivedBytes} bytes: ${messages}`)
        return receivedBytes >= count
      },
      LONG_DEADLINE_MS,
    )

  const peaks = { cli: 0, coordinator: 0, agent: 0 }
  const recordPeaks = () => {
    const pids = { cli: cli.pid, coordinator: coordinator.pid, agent: findAgentPid(box.id) }
    for (const name of ['cli', 'coordinator', 'agent'] as const) {
      const pid = pids[name]
      if (pid !== undefined) peaks[name] = Math.max(peaks[name], readPeakMiB(pid))
    }
  }
  const faults: Record<string, () => Promise<void> | void> = {
    'client cut': () => clientProxy.reset(),
    'tunnel cut': () => agentProxy.reset(),
    'coordinator killed': restart,
    async 'reader stops'() {
      cli.stdout.pause()
      await delay(1000)
      cli.stdout.resume()
    },
  }
  const sequence = [...Object.entries(faults), ...Object.entries(faults)]
  t.equal(sequence.length, FAULTS)
  for (const [index, [name, cause]] of sequence.entries()) {
    // In the middle of a part.
    await waitForBytes((index + 0.5) * PART_BYTES)
    recordPeaks()
    await cause()
    t.ok(receivedBytes <= (index + 1) * PART_BYTES, `${name} after ${receivedBytes} bytes`)
    await coordinator.exec(box.hostname, `touch go-${index}`)
  }
  await waitForBytes(TOTAL_BYTES * 0.95)
  recordPeaks()
  const [exitCode] = await exited
  t.equal(exitCode, 7)
  t.equal(receivedBytes, TOTAL_BYTES)
  t.equal(received.digest('hex'), sent.digest('hex'))
  for (const [name, peak] of Object.entries(peaks))
    t.ok(peak > 0 && peak < MAX_RESIDENT_MIB, `${name}: at most ${Math.round(peak)} MiB`)
})
