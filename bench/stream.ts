// From a byte written on a box to the event at the client, and how many lines a second come through: against `tail -f`
// over ssh through a reverse tunnel.
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Boxwood } from './support/boxwood.ts'
import { type Follow, followOverBoxwood, followOverSsh } from './support/follow-output.ts'
import type { SshBench } from './support/ssh.ts'
import { duration, median, quantile, round } from './support/stats.ts'
import type { Table } from './support/table.ts'

/** Lines of a turn that count: each has a time of its own, when none of the others is written. */
const STAMPS = 1000
const SLOT_MS = 5
const DELAY_TURNS = 15
/** What is written faster ahead of them, and does not count. */
const WARM_UP = 4_000
/** As many slow ones do not count either: others may still be warming up. */
const SETTLE = 100
/** Ahead of all turns and not counted: all programs are as they are after minutes of use. */
const FIRST_WARM_UP = 20_000
const RATE_TURNS = 3
const LINES = 300_000
const STREAMS = 64
const GIVE_UP_MS = 120_000

/** Runs shell text once the file is there, and stays. */
const after = (go: string, script: string) =>
  `while [ ! -e ${go} ]; do sleep 0.02; done; ${script}; sleep 600`

/** When to write: `slot` of as many as there are. */
type Slot = { slot: number; slots: number }

/**
 * Writes the time again and again, in seconds by the clock that nobody sets, which is process.hrtime's. After the first
 * ones, everything in between sleeps and has to be woken.
 */
const stamper = (warmUp: number, { slot, slots }: Slot) => `perl -e '
  use Time::HiRes qw(sleep clock_gettime clock_nanosleep CLOCK_MONOTONIC TIMER_ABSTIME);
  $| = 1;
  sub stamp { printf "%.6f\\n", clock_gettime(CLOCK_MONOTONIC) }
  for (1..${warmUp}) { stamp(); sleep(0.0004) }
  my $period = ${slots * SLOT_MS}e6;
  my $next = (int(clock_gettime(CLOCK_MONOTONIC) * 1e9 / $period) + 2) * $period + ${slot * SLOT_MS}e6;
  for (1..${SETTLE + STAMPS}) {
    clock_nanosleep(CLOCK_MONOTONIC, $next, TIMER_ABSTIME);
    stamp();
    $next += $period;
  }'`

/** Lines of 64 bytes, each by a write of its own. */
const lines = (count: number) => `awk 'BEGIN{for(i=0;i<${count};i++){printf "%063d\\n",i; fflush()}}'`

/** What waits for a file before it writes, and how the file comes to be. */
type Gate = { go: string; open(): Promise<void> }

/** Milliseconds from each write to its arrival, once it is warm. What writes stays, until it is closed. */
async function latencies(follow: Follow, name: string, gate: Gate, warmUp: number, slot: Slot) {
  const samples: number[] = []
  const { onText, close } = await follow(name, after(gate.go, stamper(warmUp, slot)))
  const all = new Promise<void>((resolve) => {
    let rest = ''
    onText((text, at) => {
      const stamps = (rest + text).split('\n')
      rest = stamps.pop() ?? ''
      for (const stamp of stamps) if (stamp !== '') samples.push(at - Number(stamp) * 1000)
      if (samples.length >= warmUp + SETTLE + STAMPS) resolve()
    })
  })
  await gate.open()
  await withDeadline(all)
  return { ms: samples.slice(-STAMPS), close }
}

/** Lines a second that arrive from `streams` writers, from their start to the last line. */
async function rate(follow: Follow, name: string, gate: Gate, streams: number) {
  const count = Math.floor(LINES / streams)
  const all = await Promise.all(
    Array.from({ length: streams }, (_, i) => follow(`${name}-${i}`, after(gate.go, lines(count)))),
  )
  const arrived = all.map(
    (followed) =>
      new Promise<void>((resolve) => {
        let seen = 0
        followed.onText((text) => {
          for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) seen += 1
          if (seen >= count) resolve()
        })
      }),
  )
  const ms = await duration(async () => {
    await gate.open()
    await withDeadline(Promise.all(arrived))
  })
  await Promise.all(all.map(({ close }) => close()))
  return (count * streams * 1000) / ms
}

async function withDeadline(work: Promise<unknown>): Promise<void> {
  const timer = Promise.withResolvers<never>()
  const timeout = setTimeout(() => timer.reject(new Error('not everything arrived')), GIVE_UP_MS)
  await Promise.race([work, timer.promise]).finally(() => clearTimeout(timeout))
}

export async function benchStream(boxwood: Boxwood, ssh: SshBench | null): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-stream-'))
  const spawnShell = (script: string) => spawn('/bin/sh', ['-c', script], { stdio: 'ignore' })
  const contenders = [
    {
      name: 'Boxwood',
      follow: followOverBoxwood(boxwood),
      gate: (turn: string): Gate => ({ go: `go-${turn}`, open: () => boxwood.exec(`touch go-${turn}`) }),
    },
    ...(ssh
      ? [
          {
            name: 'tail -f over a tuned ssh -R',
            follow: followOverSsh(ssh.reverse, dir, spawnShell),
            gate: (turn: string): Gate => {
              const go = join(dir, `go-${turn}`)
              return { go, open: () => writeFile(go, '') }
            },
          },
        ]
      : []),
  ].map((contender) => ({
    ...contender,
    p50: [] as number[],
    p99: [] as number[],
    one: [] as number[],
    many: [] as number[],
  }))

  for (const { follow, gate } of contenders) {
    const alone = { slot: 0, slots: 1 }
    const { close } = await latencies(follow, 'stamps-warm-up', gate('warm-up'), FIRST_WARM_UP, alone)
    await close()
  }
  const slots = contenders.length
  for (let turn = 0; turn < DELAY_TURNS; turn++) {
    // At the same time: whatever else the processor is used for meanwhile, it is used for with all of them.
    const measured = await Promise.all(
      contenders.map(({ follow, gate }, slot) =>
        latencies(follow, `stamps-${turn}`, gate(`${turn}-stamps`), WARM_UP, { slot, slots }),
      ),
    )
    for (const [index, { ms }] of measured.entries()) {
      contenders[index]?.p50.push(median(ms))
      contenders[index]?.p99.push(quantile(ms, 0.99))
    }
    await Promise.all(measured.map(({ close }) => close()))
  }
  for (let turn = 0; turn < RATE_TURNS; turn++)
    for (const { follow, gate, one, many } of contenders) {
      one.push(await rate(follow, `lines-${turn}-one`, gate(`${turn}-one`), 1))
      many.push(await rate(follow, `lines-${turn}-many`, gate(`${turn}-many`), STREAMS))
    }
  await rm(dir, { recursive: true, force: true })

  const [ours] = contenders
  if (!ours) throw new Error('nothing was measured')
  return [
    {
      title: 'From a line written on the box to its arrival at the client',
      columns: ['', 'p50 ms', 'p99 ms', '× Boxwood at p50', '× Boxwood at p99'],
      rows: contenders.map(({ name, p50, p99 }) => [
        name,
        round(median(p50)),
        round(median(p99)),
        round(median(p50) / median(ours.p50)),
        round(median(p99) / median(ours.p99)),
      ]),
    },
    {
      title: `Lines of 64 bytes a second, each written by itself`,
      columns: ['', 'one stream', `${STREAMS} streams`, 'Boxwood ÷ it, one', `Boxwood ÷ it, ${STREAMS}`],
      rows: contenders.map(({ name, one, many }) => [
        name,
        round(median(one)),
        round(median(many)),
        round(median(ours.one) / median(one)),
        round(median(ours.many) / median(many)),
      ]),
    },
  ]
}
