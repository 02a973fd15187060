// A simulated process table, for measurements of process snapshots.
import { roundMemory } from '../../agent/vitals/processes/round-memory.ts'
import type { SnapshotEntry } from '../../shared/process-delta.ts'

/**
 * Daemons and servers of a development box. Each minute a twentieth of them has used CPU time, and a tenth has another
 * resident size; every few minutes a short command is seen, and every half hour a server restarts.
 */
export function createProcessTable(count: number, random: () => number, now: number) {
  const int = (max: number) => Math.floor(random() * max)
  const processes = new Map<number, SnapshotEntry>()
  let nextPid = 1

  function start(at: number): void {
    const pid = nextPid
    nextPid += 1 + int(20)
    const name = NAMES[int(NAMES.length)] ?? 'sh'
    const command = `/usr/bin/${name} --config /home/box/projects/${name}-${int(40)}/settings.json --port ${3000 + int(999)}`
    const entry: SnapshotEntry = {
      process: [pid, pid === 1 ? 0 : 1, at - int(1000), 'box', name, command],
      cpuTenths: int(20),
      rssKiB: roundMemory(2000 + int(200_000)),
    }
    processes.set(pid, entry)
  }
  const exitOne = () => processes.delete([...processes.keys()][1 + int(processes.size - 1)] ?? 0)

  while (processes.size < count) start(now - 86_400_000)
  let transient: number | undefined

  /** The table one minute later. */
  return function advance(at: number): Map<number, SnapshotEntry> {
    if (transient !== undefined) processes.delete(transient)
    transient = undefined
    if (random() < 0.3) {
      transient = nextPid
      start(at)
    }
    if (random() < 1 / 30) {
      exitOne()
      start(at)
    }
    for (const [pid, entry] of processes) {
      const isBusy = random() < 0.05
      const rssKiB =
        random() < 0.1 ? roundMemory(Math.max(1000, entry.rssKiB + 4 * (int(400) - 200))) : entry.rssKiB
      const cpuTenths = isBusy ? 1 + int(30) : 0
      if (cpuTenths !== entry.cpuTenths || rssKiB !== entry.rssKiB)
        processes.set(pid, { ...entry, cpuTenths, rssKiB })
    }
    return new Map(processes)
  }
}

const NAMES = [
  'node',
  'python3',
  'bash',
  'sshd',
  'postgres',
  'redis-server',
  'vite',
  'tsserver',
  'nginx',
  'cron',
]
