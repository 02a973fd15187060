// How many test files run at the same time: one for each CPU, and more while the CPUs are idle because the files wait for
// processes, engines and browsers.
import { cpus, freemem } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

export type SlotOptions = {
  /** Files that always run at the same time. */
  min: number
  /** Files that run at the same time while the CPUs are idle. */
  max: number
  /** The idle share of all CPUs since the last call, between 0 and 1. */
  readIdleShare: () => number
  /** Resolves when the idle share is measured again. */
  nextMeasurement: () => Promise<unknown>
}

/** An additional file starts while more of the CPUs is idle. */
const IDLE_SHARE = 0.3
/** A file with a coordinator, a box and a browser uses about this much memory. */
const BYTES_PER_FILE = 1024 ** 3
/** The start of a file takes about this long; before, its CPU use cannot be seen. */
const MEASUREMENT_MS = 1000

/** @param jobs a fixed number of files; undefined: the number follows the machine */
export function getSlots(jobs: number | undefined): SlotOptions {
  const cpuCount = cpus().length
  const byMemory = Math.max(1, Math.floor(freemem() / BYTES_PER_FILE))
  return {
    min: jobs ?? Math.min(cpuCount, byMemory),
    max: jobs ?? Math.min(2 * cpuCount, byMemory),
    readIdleShare: createIdleShare(),
    nextMeasurement: () => delay(MEASUREMENT_MS),
  }
}

function createIdleShare(): () => number {
  const read = () => {
    const times = cpus().map((cpu) => cpu.times)
    const idle = times.reduce((sum, time) => sum + time.idle, 0)
    const total = times.reduce(
      (sum, time) => sum + time.idle + time.user + time.sys + time.nice + time.irq,
      0,
    )
    return { idle, total }
  }
  let last = read()
  return () => {
    const now = read()
    const share = (now.idle - last.idle) / Math.max(1, now.total - last.total)
    last = now
    return share
  }
}

/**
 * Calls `run` for each item of `next`, until `next` returns undefined and all calls have ended. At most one additional item
 * starts after each measurement.
 */
export async function runInSlots<T>(
  next: () => T | undefined,
  run: (item: T) => Promise<unknown>,
  { min, max, readIdleShare, nextMeasurement }: SlotOptions,
): Promise<void> {
  const running = new Set<Promise<unknown>>()
  let measurement = nextMeasurement()
  let isIdle = false
  for (;;) {
    while (running.size < min || (isIdle && running.size < max)) {
      const item = next()
      if (item === undefined) return void (await Promise.all(running))
      isIdle = false
      const promise = run(item).finally(() => running.delete(promise))
      running.add(promise)
    }
    const isMeasured = await Promise.race([...running, measurement.then(() => 'measured')])
    if (isMeasured !== 'measured') continue
    isIdle = readIdleShare() > IDLE_SHARE
    measurement = nextMeasurement()
  }
}
