// Reads what a coordinator has stored about a box over HTTP: metrics, process snapshots and listening ports.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Metrics } from '../../shared/api/metrics.ts'
import type { ListeningPort, ProcsAt } from '../../shared/api/process-snapshots.ts'
import { SAMPLE_SECONDS, SNAPSHOT_SECONDS } from '../../shared/report-limits.ts'
import { waitUntil } from './wait-until.ts'

export const SAMPLE_MS = SAMPLE_SECONDS * 1000
export const SNAPSHOT_MS = SNAPSHOT_SECONDS * 1000

/** All times are milliseconds since the epoch. */
export type Measurements = ReturnType<typeof createMeasurements>

/** @param getJson requests a path below /api/v1 and returns the response body, also of an error */
// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI check of getJson has validated the response.
export function createMeasurements(boxId: string, getJson: (path: string) => Promise<any>) {
  const readMetrics = (from: number, to: number): Promise<Metrics> =>
    getJson(`/boxes/${boxId}/metrics?from=${from / 1000}&to=${to / 1000}`)
  const readProcsAt = (at: number): Promise<ProcsAt> => getJson(`/boxes/${boxId}/procs-at?t=${at / 1000}`)

  return {
    readMetrics,
    readProcsAt,
    /** null: not known. */
    async readListening(): Promise<ListeningPort[] | null> {
      return (await getJson(`/boxes/${boxId}/port-shares`)).listening?.ports ?? null
    },
    /** Returns the metrics of the bucket that ends at `end`, when the sample is stored. */
    async waitForSample(end: number): Promise<Metrics> {
      await sleepUntil(end)
      const read = async () => {
        const metrics = await readMetrics(end - SAMPLE_MS, end)
        return metrics.series.cpu_count.avg[0] !== null && metrics
      }
      return waitUntil(`the sample until ${new Date(end).toISOString()} is stored`, read)
    },
    /** Returns the snapshot of this minute, when it is stored. */
    async waitForSnapshot(minute: number): Promise<ProcsAt> {
      await sleepUntil(minute)
      const read = async () => {
        const snapshot = await readProcsAt(minute)
        return floorTo(SNAPSHOT_MS, Date.parse(snapshot.at)) === minute && snapshot
      }
      return waitUntil(`the snapshot of ${new Date(minute).toISOString()} is stored`, read)
    },
  }
}

export const floorTo = (ms: number, at: number): number => Math.floor(at / ms) * ms
export const nextMultiple = (ms: number, after = Date.now()): number => floorTo(ms, after) + ms
/** Less load for the machine than polling. */
export const sleepUntil = (at: number) => sleep(Math.max(0, at - Date.now()))
