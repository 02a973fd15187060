// The cutting test: a detached command writes, everything between it and its reader is cut at random, and no byte of
// its output, no event and not its exit code may be lost, repeated or invented.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { agentPid } from '../agent-pid.ts'
import { startCoordinatorProcess, waitUntil } from '../coordinator-process.ts'
import { randomBuffer, seeded, shuffled } from '../random.ts'
import { startTunnelProxy } from '../tunnel-proxy.ts'
import { followToTheEnd } from './resuming-reader.ts'
import { EXIT_CODE, expectedOutput, NOISE_BYTES, STDOUT_A_BLOCK, writerCommand } from './writer.ts'

/** A machine on which a fleet of coordinators, agents and readers is killed again and again. */
export type Stage = Awaited<ReturnType<typeof buildStage>>

export async function buildStage(t: Test) {
  const target = { port: 0 }
  const proxy = await startTunnelProxy(() => target.port)
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_AGENT_URL: proxy.url,
    BOXWOOD_LOG: 'silent',
    // All that is written: how long a box is away must not decide whether its log still has the beginning.
    BOXWOOD_LOG_BYTES: String(256 * 1024 * 1024),
  })
  // After the coordinator's own teardown, which needs the box to be reached.
  t.teardown(() => proxy.close())
  const aim = () => {
    target.port = Number(new URL(coordinator.url).port)
  }
  aim()
  const box = await coordinator.waitForFirstBox()
  return {
    coordinator,
    proxy,
    box,
    async restart() {
      await coordinator.start()
      aim()
    },
  }
}

/** One kind of cut. Resolves when the harm is done and what was killed is on its way back. */
type Cut = (stage: Stage, reader: { cut(): void }, random: () => number) => Promise<void>

const CUTS: Readonly<Record<string, Cut>> = {
  client: async (_stage, reader) => reader.cut(),
  'tunnel reset': async ({ proxy }) => proxy.reset(),
  'tunnel half-open': async ({ proxy }, reader, random) => {
    proxy.blackhole()
    await delay(200 + random() * 1500)
    // Both ends would find out in the end; a test does not wait for the 45 seconds.
    proxy.reset()
    reader.cut()
  },
  'agent kill -9': async ({ box }) => {
    const pid = agentPid(box.id)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  },
  'coordinator kill -9': async (stage, _reader, random) => {
    await stage.coordinator.kill('SIGKILL')
    await delay(random() * 1000)
    await stage.restart()
  },
}

export type CuttingOptions = { seed: number; mebibytes: number; cuts: number }

/** Writes, cuts and compares once. Asserts on `t`; says what it did. */
export async function cutEverything(t: Test, stage: Stage, { seed, mebibytes, cuts }: CuttingOptions) {
  const { coordinator, box } = stage
  const random = seeded(seed)
  const noise = randomBuffer(NOISE_BYTES, random)
  const held = Math.ceil(mebibytes / 10)
  const route = `/v1/box/${box.hostname}`
  const folder = `cutting-${seed}`
  await coordinator.exec(box.hostname, `mkdir -p ${folder}`)
  const uploaded = await coordinator.send('PUT', `${route}/upload?path=${folder}/noise`, noise, {
    'content-length': noise.length,
  })
  await uploaded.toArray()
  const started = await coordinator.sendJson('POST', `${route}/exec`, {
    command: writerCommand(mebibytes, held, 0.1),
    cwd: folder,
    detached: true,
  })
  t.equal(started.type, 'exec.started', `started: ${JSON.stringify(started)}`)
  const { processId } = started

  const stream = `${route}/exec/${processId}/stream?encoding=base64`
  const open = (headers: Record<string, string>): Promise<IncomingMessage> =>
    coordinator.send('GET', stream, undefined, headers)
  const reader = followToTheEnd(open, 60_000)
  const outcome = reader.done.then(
    (followed) => ({ followed }),
    (error: unknown) => ({ error }),
  )
  let over = false
  void outcome.then(() => {
    over = true
  })

  const counts: Record<string, number> = {}
  const deck = () => shuffled(Object.keys(CUTS), random)
  let kinds = deck()
  let done = 0
  const cutOnce = async () => {
    if (kinds.length === 0) kinds = deck()
    const kind = kinds.pop() ?? ''
    await CUTS[kind]?.(stage, reader, random)
    counts[kind] = (counts[kind] ?? 0) + 1
    done += 1
    await delay(100 + random() * 1200)
  }
  while (done < cuts && !over) await cutOnce()
  const finished = await waitUntil('the box can be told to finish', async () => {
    const answer = await coordinator.exec(box.hostname, `touch ${folder}/finish`).catch(() => undefined)
    return answer?.exitCode === 0
  })
  t.ok(finished && !over, 'the command was still writing after the last cut')
  for (let extra = 0; extra < 2 && !over; extra++) await cutOnce()

  const result = await outcome
  if ('error' in result) throw result.error
  const { followed } = result
  const expected = expectedOutput(mebibytes, noise)
  t.equal(followed.stdout.bytes, mebibytes * STDOUT_A_BLOCK, 'as many bytes of stdout as were written')
  t.equal(followed.stdout.sha256, expected.stdout, 'stdout is exact')
  t.equal(followed.stderr.sha256, expected.stderr, 'stderr is exact')
  t.match(followed.exit, { status: 'exited', exitCode: EXIT_CODE, signal: null }, 'the true exit code')
  t.ok(done >= cuts, `${done} cuts: ${JSON.stringify(counts)}`)
  await checkHistory(t, stage, processId, expected.lastBlock)
  await coordinator.exec(box.hostname, `rm -r ${folder}`)
  return { seed, counts, opened: followed.opened, events: followed.events }
}

/** The record is complete too, though the coordinator was away for a part of the run. */
async function checkHistory(t: Test, { coordinator, box }: Stage, processId: string, lastBlock: Buffer) {
  const path = `/api/v1/boxes/${box.id}/commands/${processId}`
  const record = await waitUntil('the record is complete', async () => {
    const { command } = await coordinator.sendJson('GET', path)
    return command?.status !== 'running' && command
  })
  t.match(record, { mode: 'detached', status: 'exited', exitCode: EXIT_CODE, stdoutTruncated: true })
  const { data, skipped, done } = await coordinator.sendJson('GET', `${path}/output?encoding=base64&offset=0`)
  const kept = Buffer.from(data, 'base64')
  t.ok(
    kept.length > 0 && skipped + kept.length === record.stdoutBytes && done,
    'its output goes to the last byte',
  )
  const tail = lastBlock.subarray(lastBlock.length - kept.length)
  t.equal(hashOf(kept), hashOf(tail), 'and is what was written')
}

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
