// A plausible series of samples: a box on which people and agents work during the day, and which is idle at night.
import type { MetricsSample } from '../../shared/api/metrics.ts'
import { createSeededRandom } from '../../test/support/random.ts'

const MiB = 1024 ** 2
const GiB = 1024 ** 3

type Phase = 'idle' | 'light' | 'build'

/**
 * Returns a function that creates the sample of each bucket, in order. At night, from 20 to 8 o'clock, only background
 * processes run. During the day, phases of light work (an editor, an agent that waits for its model) and builds alternate,
 * each for some minutes. The box has its own kernel, two file systems and two network interfaces, so no series is null.
 */
export function createBusyBox(seed: number): (start: number) => MetricsSample {
  const random = createSeededRandom(seed)
  const between = (min: number, max: number) => min + random() * (max - min)
  const chance = (probability: number) => random() < probability
  const round = (value: number, step: number) => Math.round(Math.round(value / step) * step * 100) / 100
  const bytes = (min: number, max: number) => Math.round(between(min, max))
  const load = [0, 0, 0]
  let phase: Phase = 'idle'
  let memory = 900 * MiB
  let [homeUsed, tempUsed] = [6 * GiB, 50 * MiB]

  return (start) => {
    const hour = (start / 3600) % 24
    if (hour < 8 || hour >= 20) phase = 'idle'
    else if (phase === 'idle' || chance(0.08)) phase = chance(0.35) ? 'build' : 'light'
    const isBuild = phase === 'build'
    const isIdle = phase === 'idle'
    const cpu = isBuild ? between(55, 100) : isIdle ? between(0.2, 0.9) : between(2, 25)
    load.forEach((value, i) => {
      const weight = [0.4, 0.1, 0.03][i] ?? 0
      load[i] = value + ((cpu / 100) * 4 - value) * weight
    })
    const [load1 = 0, load5 = 0, load15 = 0] = load
    memory += (isBuild ? 40 : isIdle ? 0 : between(-10, 10)) * MiB * random()
    if (memory > 6 * GiB || (phase === 'light' && chance(0.02))) memory = between(0.9, 1.6) * GiB
    if (isBuild) homeUsed += bytes(0, 4 * MiB)
    if (homeUsed > 30 * GiB) homeUsed -= bytes(10 * GiB, 20 * GiB)
    tempUsed = isIdle ? tempUsed : bytes(50 * MiB, 400 * MiB)
    const written = isBuild ? bytes(MiB, 40 * MiB) : isIdle && chance(0.5) ? 0 : bytes(0, 60_000)
    const read = isBuild ? bytes(0, 8 * MiB) : chance(isIdle ? 0.02 : 0.3) ? bytes(0, 200_000) : 0
    const received = isIdle ? bytes(300, 700) : chance(0.2) ? bytes(10_000, 4 * MiB) : bytes(400, 30_000)
    return {
      type: 'metrics.sample',
      start,
      values: {
        cpu_pct: round(cpu, 0.1),
        cpu_count: 4,
        mem_used_bytes: Math.round(memory + between(-2, 2) * MiB),
        mem_total_bytes: 8 * GiB,
        load1: round(load1, 0.01),
        load5: round(load5, 0.01),
        load15: round(load15, 0.01),
        process_count: isIdle ? 48 : Math.round(between(60, isBuild ? 180 : 90)),
        listener_count: isIdle ? 3 : 3 + (chance(0.1) ? 1 : 0),
        disk_read_bytes_per_sec: read,
        disk_write_bytes_per_sec: written,
      },
      fs: [
        {
          mount: '/home',
          used_bytes: homeUsed,
          total_bytes: 80 * GiB,
          read_bytes_per_sec: read,
          write_bytes_per_sec: written,
        },
        {
          mount: '/tmp',
          used_bytes: tempUsed,
          total_bytes: 4 * GiB,
          read_bytes_per_sec: 0,
          write_bytes_per_sec: isIdle ? 0 : bytes(0, MiB),
        },
      ],
      ifaces: [
        {
          name: 'eth0',
          rx_bytes_per_sec: received,
          tx_bytes_per_sec: Math.round(received * between(0.1, 0.6)),
        },
        {
          name: 'lo',
          rx_bytes_per_sec: isIdle ? 120 : bytes(0, 500_000),
          tx_bytes_per_sec: isIdle ? 120 : bytes(0, 500_000),
        },
      ],
    }
  }
}
