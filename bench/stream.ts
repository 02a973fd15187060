// Measures the latency and the throughput of lines from a program on a box to the client, against `tail -f` over ssh through
// a reverse tunnel.
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LONG_DEADLINE_MS } from '../test/support/wait-until.ts'
import type { Boxwood } from './support/boxwood.ts'
import { createBoxwoodFollower, createSshFollower, type FollowScript } from './support/follow-output.ts'
import type { SshBaseline } from './support/ssh.ts'
import { formatNumber, measureDuration, median, quantile } from './support/stats.ts'
import type { Table } from './support/table.ts'

const LATENCY_RUNS = 15
/** Measured lines per latency run. */
const MEASURED_LINES = 1000
/** Time between the lines of two candidates, so that no two candidates write at the same time. */
const TIME_SLOT_MS = 5
/** Lines at a higher rate before the measured ones, discarded. They take about two seconds. */
const WARM_UP_LINES = 4000
/** First lines at the measured rate, discarded: another candidate may still be warming up. */
const SETTLE_LINES = 100
/** Warm-up lines before the first run, about ten seconds of them, so that all programs are in a steady state. */
const INITIAL_WARM_UP_LINES = 20_000
const THROUGHPUT_RUNS = 3
/** Lines per throughput run, of all streams together. */
const THROUGHPUT_LINES = 300_000
const CONCURRENT_STREAMS = 64

/** A file that starts the waiting scripts when it is created. */
type StartFile = { path: string; create(): Promise<void> }

/**
 * When a script writes: candidate `index` of `count` writes `index * TIME_SLOT_MS` after the start of each period of
 * `count * TIME_SLOT_MS`.
 */
type TimeSlot = { index: number; count: number }

/** A shell script that runs `script` after the file exists, and then sleeps until it is killed. */
const createWaitingScript = (startPath: string, script: string) =>
  `while [ ! -e ${startPath} ]; do sleep 0.02; done; ${script}; exec sleep 600`

/**
 * A shell script that writes timestamps, one per line, in seconds of CLOCK_MONOTONIC, the clock of process.hrtime. After the
 * warm-up the lines are so far apart that every process between writer and client sleeps before each line.
 */
const createTimestampScript = (warmUpLines: number, { index, count }: TimeSlot) => `perl -e '
  use Time::HiRes qw(sleep clock_gettime clock_nanosleep CLOCK_MONOTONIC TIMER_ABSTIME);
  $| = 1;
  sub write_timestamp { printf "%.6f\\n", clock_gettime(CLOCK_MONOTONIC) }
  for (1..${warmUpLines}) { write_timestamp(); sleep(0.0004) }
  my $period = ${count * TIME_SLOT_MS}e6;
  my $next = (int(clock_gettime(CLOCK_MONOTONIC) * 1e9 / $period) + 2) * $period + ${index * TIME_SLOT_MS}e6;
  for (1..${SETTLE_LINES + MEASURED_LINES}) {
    clock_nanosleep(CLOCK_MONOTONIC, $next, TIMER_ABSTIME);
    write_timestamp();
    $next += $period;
  }'`

/** A shell script that writes lines of 64 bytes, each with its own write(2). */
const createLinesScript = (count: number) =>
  `awk 'BEGIN{for(i=0;i<${count};i++){printf "%063d\\n",i; fflush()}}'`

/** Returns the milliseconds from each measured write to its arrival. The script stays alive until `close`. */
async function measureLatencies(
  followScript: FollowScript,
  name: string,
  startFile: StartFile,
  warmUpLines: number,
  timeSlot: TimeSlot,
) {
  const samples: number[] = []
  const script = createWaitingScript(startFile.path, createTimestampScript(warmUpLines, timeSlot))
  const { onText, close } = await followScript(name, script)
  const allArrived = new Promise<void>((resolve) => {
    let incomplete = ''
    onText((text, receivedAt) => {
      const lines = (incomplete + text).split('\n')
      incomplete = lines.pop() ?? ''
      for (const line of lines) if (line !== '') samples.push(receivedAt - Number(line) * 1000)
      if (samples.length >= warmUpLines + SETTLE_LINES + MEASURED_LINES) resolve()
    })
  })
  await startFile.create()
  await withDeadline(allArrived)
  return { latenciesMs: samples.slice(-MEASURED_LINES), close }
}

/** Lines per second from `streamCount` concurrent writers, from their start until the last line has arrived. */
async function measureThroughput(
  followScript: FollowScript,
  name: string,
  startFile: StartFile,
  streamCount: number,
) {
  const linesPerStream = Math.floor(THROUGHPUT_LINES / streamCount)
  const script = createWaitingScript(startFile.path, createLinesScript(linesPerStream))
  const scripts = await Promise.all(
    Array.from({ length: streamCount }, (_, i) => followScript(`${name}-${i}`, script)),
  )
  const allArrived = scripts.map(
    ({ onText }) =>
      new Promise<void>((resolve) => {
        let arrived = 0
        onText((text) => {
          for (let i = text.indexOf('\n'); i !== -1; i = text.indexOf('\n', i + 1)) arrived += 1
          if (arrived >= linesPerStream) resolve()
        })
      }),
  )
  const ms = await measureDuration(async () => {
    await startFile.create()
    await withDeadline(Promise.all(allArrived))
  })
  await Promise.all(scripts.map(({ close }) => close()))
  return (linesPerStream * streamCount * 1000) / ms
}

async function withDeadline(work: Promise<unknown>): Promise<void> {
  const expired = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => expired.reject(new Error(`not all lines arrived within ${LONG_DEADLINE_MS} ms`)),
    LONG_DEADLINE_MS,
  )
  await Promise.race([work, expired.promise]).finally(() => clearTimeout(timer))
}

export async function benchStream(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-stream-'))
  const spawnShell = (script: string) => spawn('/bin/sh', ['-c', script], { stdio: 'ignore' })
  const candidates = [
    {
      name: 'Boxwood',
      followScript: createBoxwoodFollower(boxwood),
      createStartFile: (name: string): StartFile => ({
        path: name,
        create: () => boxwood.exec(`touch ${name}`),
      }),
    },
    ...(ssh
      ? [
          {
            name: '`tail -f` over a tuned `ssh -R`',
            followScript: createSshFollower(ssh.reverse, dir, spawnShell),
            createStartFile: (name: string): StartFile => {
              const path = join(dir, name)
              return { path, create: () => writeFile(path, '') }
            },
          },
        ]
      : []),
  ].map((candidate) => ({
    ...candidate,
    /** The p50 and the p99 of each latency run, in milliseconds. */
    p50Ms: [] as number[],
    p99Ms: [] as number[],
    /** Lines per second of each throughput run. */
    singleStreamRates: [] as number[],
    concurrentStreamRates: [] as number[],
  }))

  for (const { followScript, createStartFile } of candidates) {
    const { close } = await measureLatencies(
      followScript,
      'warm-up',
      createStartFile('start-warm-up'),
      INITIAL_WARM_UP_LINES,
      { index: 0, count: 1 },
    )
    await close()
  }
  for (let i = 0; i < LATENCY_RUNS; i++) {
    // The candidates run at the same time, so that other load on the processor affects all of them.
    const results = await Promise.all(
      candidates.map(({ followScript, createStartFile }, index) =>
        measureLatencies(followScript, `latency-${i}`, createStartFile(`start-latency-${i}`), WARM_UP_LINES, {
          index,
          count: candidates.length,
        }),
      ),
    )
    for (const [index, { latenciesMs }] of results.entries()) {
      candidates[index]?.p50Ms.push(median(latenciesMs))
      candidates[index]?.p99Ms.push(quantile(latenciesMs, 0.99))
    }
    await Promise.all(results.map(({ close }) => close()))
  }
  for (let i = 0; i < THROUGHPUT_RUNS; i++)
    for (const { followScript, createStartFile, singleStreamRates, concurrentStreamRates } of candidates) {
      const [singleName, concurrentName] = [`throughput-${i}-single`, `throughput-${i}-concurrent`]
      singleStreamRates.push(
        await measureThroughput(followScript, singleName, createStartFile(`start-${singleName}`), 1),
      )
      concurrentStreamRates.push(
        await measureThroughput(
          followScript,
          concurrentName,
          createStartFile(`start-${concurrentName}`),
          CONCURRENT_STREAMS,
        ),
      )
    }
  await rm(dir, { recursive: true, force: true })

  const [boxwoodCandidate] = candidates
  if (!boxwoodCandidate) throw new Error('no candidates to compare')
  return [
    {
      title: 'Latency from a line written on the box to its arrival at the client',
      columns: ['', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ Boxwood', 'p99 ÷ Boxwood'],
      rows: candidates.map(({ name, p50Ms, p99Ms }) => [
        name,
        formatNumber(median(p50Ms)),
        formatNumber(median(p99Ms)),
        formatNumber(median(p50Ms) / median(boxwoodCandidate.p50Ms)),
        formatNumber(median(p99Ms) / median(boxwoodCandidate.p99Ms)),
      ]),
    },
    {
      title: 'Throughput of 64-byte lines, one write per line (lines/s)',
      columns: [
        '',
        '1 stream',
        `${CONCURRENT_STREAMS} streams`,
        'Boxwood ÷ this, 1 stream',
        `Boxwood ÷ this, ${CONCURRENT_STREAMS} streams`,
      ],
      rows: candidates.map(({ name, singleStreamRates, concurrentStreamRates }) => [
        name,
        formatNumber(median(singleStreamRates)),
        formatNumber(median(concurrentStreamRates)),
        formatNumber(median(boxwoodCandidate.singleStreamRates) / median(singleStreamRates)),
        formatNumber(median(boxwoodCandidate.concurrentStreamRates) / median(concurrentStreamRates)),
      ]),
    },
  ]
}
