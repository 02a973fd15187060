// Measures the fork of a local box with 1 GiB: the memory of the coordinator, and the latency of commands on another box meanwhile.
// `node bench/large-fork.ts DIR…` compares this version with those in the directories, which are clones of Boxwood with its packages.
import { setTimeout as delay } from 'node:timers/promises'
import type { Box } from '../shared/api/boxes.ts'
import { PROJECT_DIR } from '../test/support/project.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../test/support/wait-until.ts'
import { startBoxwood } from './support/boxwood.ts'
import { readResidentBytes } from './support/processes.ts'
import { formatNumber, measureDuration, median, quantile, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 3
const FILL = 'head -c 1024M /dev/urandom | split -b 4M - big. && sync -f .'
const BASELINE_COMMANDS = 100

type Round = {
  forkMs: number
  pausedMs: number
  idleMs: number[]
  duringMs: number[]
  residentBytes: number
  peakBytes: number
}

async function measureRound(projectDir: string): Promise<Round> {
  const boxwood = await startBoxwood({}, projectDir)
  try {
    const { box, coordinatorPid, sendJson } = boxwood
    const exec = ({ id }: Pick<Box, 'id'>, command = 'true') =>
      sendJson('POST', `/v1/box/${id}/exec`, { command, timeoutSeconds: 300 })
    await exec(box, FILL)
    const neighbour: Box = (await sendJson('POST', '/api/v1/boxes', {})).box
    await exec(neighbour)
    const idleMs: number[] = []
    for (let i = 0; i < BASELINE_COMMANDS; i++) idleMs.push(await measureDuration(() => exec(neighbour)))
    const residentBytes = await readResidentBytes(coordinatorPid)

    let isForking = true
    let peakBytes = residentBytes
    const sampling = (async () => {
      while (isForking) {
        peakBytes = Math.max(peakBytes, await readResidentBytes(coordinatorPid))
        await delay(20)
      }
    })()
    const duringMs: number[] = []
    const commands = (async () => {
      while (isForking) duringMs.push(await measureDuration(() => exec(neighbour)))
    })()
    let pausedMs = Number.NaN
    const forkMs = await measureDuration(async () => {
      const { box: fork, snapshot } = await sendJson('POST', `/api/v1/boxes/${box.id}/fork`, {})
      await waitUntil(
        'the fork is running',
        async () => {
          const { snapshots } = await sendJson('GET', '/api/v1/snapshots?transient=1')
          const copy = snapshots.find(({ id }: { id: string }) => id === snapshot.id)
          if (copy?.pausedMs != null) pausedMs = copy.pausedMs
          const { observedState } = (await sendJson('GET', `/api/v1/boxes/${fork.id}`)).box
          return observedState === 'running'
        },
        LONG_DEADLINE_MS,
      )
      await exec(fork)
    })
    isForking = false
    await Promise.all([sampling, commands])
    return { forkMs, pausedMs, idleMs, duringMs, residentBytes, peakBytes }
  } finally {
    await boxwood.close()
  }
}

/** The versions take turns. */
export async function benchLargeFork(projectDirs: readonly string[]): Promise<Table> {
  const rounds = new Map<string, Round[]>(projectDirs.map((dir) => [dir, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const [dir, results] of rounds) results.push(await measureRound(dir))
  return {
    title: 'Fork of a local box with 1 GiB',
    columns: [
      ...['', 'fork to first exec (ms)', 'pause (ms)', 'coordinator before (MiB)', 'peak (MiB)'],
      ...['exec of another box, p50 (ms)', 'p99', 'during the fork, p50', 'p99', 'maximum'],
    ],
    rows: [...rounds].map(([dir, results]) => {
      // The pause is NaN when the copy was removed before it was read.
      const middle = (select: (round: Round) => number) =>
        formatNumber(median(results.map(select).filter(Number.isFinite)))
      const idle = results.flatMap(({ idleMs }) => idleMs)
      const during = results.flatMap(({ duringMs }) => duringMs)
      return [
        dir === PROJECT_DIR ? 'this version' : dir,
        middle(({ forkMs }) => forkMs),
        middle(({ pausedMs }) => pausedMs),
        middle(({ residentBytes }) => toMiB(residentBytes)),
        middle(({ peakBytes }) => toMiB(peakBytes)),
        formatNumber(median(idle)),
        formatNumber(quantile(idle, 0.99)),
        formatNumber(median(during)),
        formatNumber(quantile(during, 0.99)),
        formatNumber(Math.max(...during)),
      ]
    }),
  }
}

if (import.meta.main) {
  console.log(formatMarkdown(await benchLargeFork([...process.argv.slice(2), PROJECT_DIR])))
}
