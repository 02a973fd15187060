// The position of a client in the stream of all runs, as Last-Event-ID. Pure.
import { ApiError } from '../../shared/errors.ts'

export type RunsPosition = {
  /** Runs in progress: id → seq of the last received event. */
  runs: Map<string, number>
  /** The agent's sequence number of the newest run whose start the client knows; null: before the first response. */
  sequence: number | null
}

const ENTRY = 'run_[0-9a-f]{24}:\\d{1,15}'
const START = 'started:\\d{1,15}'
/** Matches a position such as `run_<24 hex>:17,run_<24 hex>:3,started:1769900000000`. */
export const RUNS_POSITION_PATTERN = new RegExp(
  `^(?:${ENTRY},){0,256}${START}$|^${ENTRY}(?:,${ENTRY}){0,255}$`,
)
export const RUN_POSITION_PATTERN = /^\d{1,15}$/

export const formatPosition = ({ runs, sequence }: RunsPosition): string =>
  [
    ...Array.from(runs, ([id, seq]) => `${id}:${seq}`),
    ...(sequence === null ? [] : [`started:${sequence}`]),
  ].join(',')

/** @throws ApiError invalid_request */
export function parseRunsPosition(text: string): RunsPosition {
  if (!RUNS_POSITION_PATTERN.test(text)) throw invalidPosition('the id of an event of this stream')
  const runs = new Map<string, number>()
  let sequence: number | null = null
  for (const entry of text.split(',')) {
    const [key = '', value] = entry.split(':')
    if (key === 'started') sequence = Number(value)
    else runs.set(key, Number(value))
  }
  return { runs, sequence }
}

/** @returns the seq of the last received event. @throws ApiError invalid_request */
export function parseRunPosition(text: string): number {
  if (!RUN_POSITION_PATTERN.test(text)) throw invalidPosition('the seq of an event, such as 17')
  return Number(text)
}

const invalidPosition = (rule: string) => new ApiError('invalid_request', `Last-Event-ID must be ${rule}.`)
