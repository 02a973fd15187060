// What the box's processes have used since the first call: CPU time and disk I/O.
import { readProcessIo } from '../../process-table.ts'
import type { BoxProcess } from '../box-processes.ts'
import { yieldEvery } from '../yield-every.ts'

/** Totals that never decrease, also when processes exit. */
export type ProcessTotals = {
  /** Ticks of the agent and its helpers. */
  agentCpuTicks: number
  /** Ticks of the other processes. */
  otherCpuTicks: number
  /** null: the counters of no process are readable. */
  disk: DiskBytes | null
}
export type DiskBytes = { readBytes: number; writtenBytes: number }

export type ProcessTotalsReader = { advance(processes: readonly BoxProcess[]): Promise<ProcessTotals> }

type Counters = { process: BoxProcess; disk: DiskBytes | undefined }
type CountersByPid = ReadonlyMap<number, Counters>

/**
 * The kernel adds the counters of a process to those of its parent when the parent reaps it. The usage of a process that
 * has exited since the previous call is therefore the growth of the parent's counters, minus what was counted before.
 * @param getHelperPid the process with which the agent measures the box, while it runs
 */
export function createProcessTotalsReader(
  procRoot: string,
  agentPid: number,
  getHelperPid: () => number | undefined = () => undefined,
): ProcessTotalsReader {
  let previous: CountersByPid | undefined
  const totals = { agentCpuTicks: 0, otherCpuTicks: 0, readBytes: 0, writtenBytes: 0 }

  return {
    async advance(processes) {
      const current = await readCounters(processes, procRoot)
      if (previous !== undefined) {
        const helperPid = getHelperPid()
        const isAgent = ({ pid }: BoxProcess) => pid === agentPid || pid === helperPid
        const changes = compare(previous, current)
        totals.agentCpuTicks += sumCpuTicks(changes, isAgent)
        totals.otherCpuTicks += sumCpuTicks(changes, (process) => !isAgent(process))
        totals.readBytes += sumDiskBytes(changes, 'readBytes')
        totals.writtenBytes += sumDiskBytes(changes, 'writtenBytes')
      }
      previous = current
      const isReadable = [...current.values()].some(({ disk }) => disk !== undefined)
      const { agentCpuTicks, otherCpuTicks, ...disk } = totals
      return { agentCpuTicks, otherCpuTicks, disk: isReadable ? disk : null }
    },
  }
}

async function readCounters(processes: readonly BoxProcess[], procRoot: string): Promise<CountersByPid> {
  const counters = new Map<number, Counters>()
  for await (const process of yieldEvery(32, processes)) {
    const text = readProcessIo(process.pid, procRoot)
    counters.set(process.pid, { process, disk: text === undefined ? undefined : parseIo(text) })
  }
  return counters
}

function parseIo(text: string): DiskBytes {
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(text)?.[1] ?? 0)
  return { readBytes: field('read_bytes'), writtenBytes: field('write_bytes') }
}

type Changes = {
  /** Processes that exist, with their counters of the previous call. */
  live: { now: Counters; old: Counters | undefined }[]
  /** Processes that have exited, each with the closest ancestor that still exists. Others were reaped outside the box. */
  reaped: { old: Counters; ancestor: BoxProcess }[]
}

function compare(previous: CountersByPid, current: CountersByPid): Changes {
  const live = [...current.values()].map((now) => ({ now, old: findSame(previous, now.process) }))
  const reaped = [...previous.values()].flatMap((old) => {
    if (findSame(current, old.process) !== undefined) return []
    const ancestor = findLivingAncestor(old.process, previous, current)
    return ancestor === undefined ? [] : { old, ancestor }
  })
  return { live, reaped }
}

/** The kernel reuses pids. */
function findSame(counters: CountersByPid, { pid, startTime }: BoxProcess): Counters | undefined {
  const found = counters.get(pid)
  return found?.process.startTime === startTime ? found : undefined
}

function findLivingAncestor(
  { ppid }: BoxProcess,
  previous: CountersByPid,
  current: CountersByPid,
): BoxProcess | undefined {
  const visited = new Set<number>()
  for (let pid = ppid; !visited.has(pid); ) {
    visited.add(pid)
    const ancestor = previous.get(pid)?.process
    if (ancestor === undefined || findSame(current, ancestor) !== undefined) return ancestor
    pid = ancestor.ppid
  }
  return undefined
}

function sumCpuTicks({ live, reaped }: Changes, isIncluded: (process: BoxProcess) => boolean): number {
  const included = live.filter(({ now }) => isIncluded(now.process))
  const own = sum(included, ({ now, old }) => now.process.cpuTicks - (old?.process.cpuTicks ?? 0))
  const ofChildren = sum(
    included,
    ({ now, old }) => now.process.childrenCpuTicks - (old?.process.childrenCpuTicks ?? 0),
  )
  const counted = sum(
    reaped.filter(({ ancestor }) => isIncluded(ancestor)),
    ({ old: { process } }) => process.cpuTicks + process.childrenCpuTicks,
  )
  return Math.max(0, own) + Math.max(0, ofChildren - counted)
}

function sumDiskBytes({ live, reaped }: Changes, counter: keyof DiskBytes): number {
  const growth = sum(live, ({ now: { disk }, old }) => {
    // The counters of a running process that become readable are the baseline.
    if (disk === undefined || (old !== undefined && old.disk === undefined)) return 0
    return disk[counter] - (old?.disk?.[counter] ?? 0)
  })
  return Math.max(0, growth - sum(reaped, ({ old }) => old.disk?.[counter] ?? 0))
}

const sum = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((total, item) => total + value(item), 0)
