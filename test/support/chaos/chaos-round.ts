// The chaos test: a client follows the output of a detached command, while random faults interrupt client, tunnel,
// agent and coordinator. The client must receive every byte, every event and the exit code exactly once.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { startCoordinatorProcess } from '../coordinator-process.ts'
import { findAgentPid } from '../find-agent-process.ts'
import { sendHalfRequests } from '../half-sent-requests.ts'
import { limitsEnv } from '../limits-env.ts'
import { createSeededRandom, randomBuffer, shuffle } from '../random.ts'
import { startTunnelProxy } from '../tunnel-proxy.ts'
import { waitUntil } from '../wait-until.ts'
import { createResumingReader } from './resuming-reader.ts'
import {
  createWriterCommand,
  EXIT_CODE,
  expectedOutput,
  NOISE_BYTES,
  STDOUT_BYTES_PER_BLOCK,
} from './writer-command.ts'

export type ChaosSetup = Awaited<ReturnType<typeof startChaosSetup>>

/** Starts a coordinator process with one box, whose agent connects through a proxy. */
export async function startChaosSetup(t: Test) {
  const target = { port: 0 }
  const proxy = await startTunnelProxy(() => target.port)
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_AGENT_URL: proxy.url,
    BOXWOOD_LOG: 'silent',
    // More than the command writes, so that the log keeps its beginning however long the box is disconnected.
    ...limitsEnv({ edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000, logBytes: 256 * 1024 * 1024 }),
  })
  // Runs after the coordinator's own teardown, which needs a connection to the box.
  t.teardown(() => proxy.close())
  const updateTarget = () => {
    target.port = Number(new URL(coordinator.url).port)
  }
  updateTarget()
  const box = await coordinator.waitForFirstBox()
  return {
    coordinator,
    proxy,
    box,
    async restartCoordinator() {
      await coordinator.start()
      updateTarget()
    },
  }
}

/** Resolves when the fault is over. A killed agent may still be restarting. */
type Fault = (setup: ChaosSetup, reader: { disconnect(): void }, random: () => number) => Promise<void>

const FAULTS: Readonly<Record<string, Fault>> = {
  'client disconnect': async (_setup, reader) => reader.disconnect(),
  'tunnel reset': async ({ proxy }) => proxy.reset(),
  'tunnel half-open': async ({ proxy }, reader, random) => {
    proxy.blackhole()
    await delay(200 + random() * 1500)
    // Both ends would detect the failure, but only after 45 seconds.
    proxy.reset()
    reader.disconnect()
  },
  'half-sent requests': async ({ coordinator, proxy }, reader, random) => {
    // More than one address may have, so that the connections of the client and of the agent replace some of them.
    const flood = await sendHalfRequests(coordinator.url, 300)
    reader.disconnect()
    proxy.reset()
    await delay(200 + random() * 1500)
    flood.close()
  },
  'agent kill -9': async ({ box }) => {
    const pid = findAgentPid(box.id)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  },
  'coordinator kill -9': async (setup, _reader, random) => {
    await setup.coordinator.kill('SIGKILL')
    await delay(random() * 1000)
    await setup.restartCoordinator()
  },
}

export type ChaosRoundOptions = {
  seed: number
  /** The length of the command's stdout. */
  mebibytes: number
  /** The minimum number of faults. */
  faults: number
}

/** Runs one command under faults and asserts on `t`. Returns the numbers of faults, connections and events. */
export async function runChaosRound(
  t: Test,
  setup: ChaosSetup,
  { seed, mebibytes, faults }: ChaosRoundOptions,
) {
  const { coordinator, box } = setup
  const random = createSeededRandom(seed)
  const noise = randomBuffer(NOISE_BYTES, random)
  const heldBlocks = Math.ceil(mebibytes / 10)
  const route = `/v1/box/${box.hostname}`
  const dir = `chaos-${seed}`
  await coordinator.exec(box.hostname, `mkdir -p ${dir}`)
  const uploaded = await coordinator.send('PUT', `${route}/upload?path=${dir}/noise`, noise, {
    'content-length': noise.length,
  })
  await uploaded.toArray()
  const started = await coordinator.sendJson('POST', `${route}/exec`, {
    command: createWriterCommand(mebibytes, heldBlocks, 0.1),
    cwd: dir,
    detached: true,
  })
  t.equal(started.type, 'exec.started', `started: ${JSON.stringify(started)}`)
  const { processId } = started

  const streamPath = `${route}/exec/${processId}/stream?encoding=base64`
  const open = (headers: Record<string, string>): Promise<IncomingMessage> =>
    coordinator.send('GET', streamPath, undefined, headers)
  const reader = createResumingReader(open)
  let isSettled = false
  const outcome = reader.done
    .then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    )
    .finally(() => {
      isSettled = true
    })

  const faultCounts: Record<string, number> = {}
  let remainingKinds: string[] = []
  let injected = 0
  const injectFault = async () => {
    if (remainingKinds.length === 0) remainingKinds = shuffle(Object.keys(FAULTS), random)
    const kind = remainingKinds.pop() ?? ''
    await FAULTS[kind]?.(setup, reader, random)
    faultCounts[kind] = (faultCounts[kind] ?? 0) + 1
    injected += 1
    await delay(100 + random() * 1200)
  }
  while (injected < faults && !isSettled) await injectFault()
  const isReleased = await waitUntil('the command may write the held blocks', async () => {
    const response = await coordinator.exec(box.hostname, `touch ${dir}/finish`).catch(() => undefined)
    return response?.exitCode === 0
  })
  t.ok(isReleased && !isSettled, 'the command was still writing after the last fault')
  for (let extra = 0; extra < 2 && !isSettled; extra++) await injectFault()

  const settled = await outcome
  if ('error' in settled) throw settled.error
  const { stdout, stderr, exit, connectionCount, eventCount } = settled.result
  const expected = expectedOutput(mebibytes, noise)
  t.equal(stdout.bytes, mebibytes * STDOUT_BYTES_PER_BLOCK, 'the length of stdout')
  t.equal(stdout.sha256, expected.stdout, 'stdout is byte-exact')
  t.equal(stderr.sha256, expected.stderr, 'stderr is byte-exact')
  t.match(exit, { status: 'exited', exitCode: EXIT_CODE, signal: null }, 'the exit code')
  t.ok(injected >= faults, `${injected} faults: ${JSON.stringify(faultCounts)}`)
  await checkHistory(t, setup, processId, expected.lastBlock)
  await coordinator.exec(box.hostname, `rm -r ${dir}`)
  return { seed, faultCounts, connectionCount, eventCount }
}

/** The command record and its output must be complete, although the coordinator was down for some of the time. */
async function checkHistory(t: Test, { coordinator, box }: ChaosSetup, processId: string, lastBlock: Buffer) {
  const path = `/api/v1/boxes/${box.id}/commands/${processId}`
  const record = await waitUntil('the record is complete', async () => {
    const { command } = await coordinator.sendJson('GET', path)
    return command?.status !== 'running' && command
  })
  t.match(record, { mode: 'detached', status: 'exited', exitCode: EXIT_CODE, stdoutTruncated: true })
  const { data, skipped, done } = await coordinator.sendJson('GET', `${path}/output?encoding=base64&offset=0`)
  const stored = Buffer.from(data, 'base64')
  t.ok(
    stored.length > 0 && skipped + stored.length === record.stdoutBytes && done,
    'the stored output ends with the last byte',
  )
  const expected = lastBlock.subarray(lastBlock.length - stored.length)
  t.equal(sha256(stored), sha256(expected), 'the stored output is byte-exact')
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
