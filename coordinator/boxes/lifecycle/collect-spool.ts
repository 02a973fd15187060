// Stores the reports that a local box has on its disk, before its machine is removed: its agent could not send them, because
// it did not respond or its machine had stopped.
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import {
  createLineParser,
  groupLines,
  InvalidReportError,
  type LineParser,
  MAX_BATCH_LINES,
  type ReportLine,
} from '../../agents/tunnel/parse-reports.ts'
import type { Ingest } from '../../agents/tunnel/reports.ts'
import type { RunLimited } from '../../base/fair-queue.ts'
import type { BoxRow } from '../../db/schema.ts'
import { type Provider, ProviderUnavailableError } from '../../providers/provider.ts'
import type { Providers } from '../../providers/regions.ts'

export type CollectSpoolOptions = {
  providers: Pick<Providers, 'byRegion'>
  ingest: Pick<Ingest, 'apply'>
  /** See StepContext. */
  machineLimit: RunLimited
  spoolLimit: RunLimited
  log: Pick<Logger, 'warn'>
  signal: AbortSignal
}

type SpooledBox = Pick<BoxRow, 'id' | 'region' | 'desired_region' | 'report_epoch'>
type SpoolProvider = Provider & Required<Pick<Provider, 'readSpool'>>

/**
 * Attempts of the job after which the reports are discarded: a box must be deleted without its reports too. A provider that cannot
 * be reached is waited for, because the deletion needs it anyway.
 */
const MAX_ATTEMPTS = 3
/** More than the agent writes: most reports are longer than 300 bytes. */
const MAX_LINES = 250_000
const NEWLINE = 10

/**
 * First terminates the processes of the machine, so that the spool is complete.
 * @param attempt failed attempts of the job so far
 */
export async function collectSpool(
  box: SpooledBox,
  attempt: number,
  options: CollectSpoolOptions,
): Promise<void> {
  const { machineLimit, spoolLimit, log, signal } = options
  const provider = await machineLimit(() => findProvider(box, options.providers))
  if (provider === undefined) return
  try {
    await spoolLimit(() => storeSpool(box, provider, options))
  } catch (err) {
    signal.throwIfAborted()
    if (attempt + 1 < MAX_ATTEMPTS || err instanceof ProviderUnavailableError) throw err
    log.warn({ err, boxId: box.id }, 'failed to store the reports in the spool of a box')
  }
}

/**
 * Returns the provider of the machine that ran last, after it has stopped this machine. A move that a delete has interrupted may
 * have copied the files to the new region, and the agent may have continued there.
 */
async function findProvider(
  { id, region, desired_region: desiredRegion }: SpooledBox,
  { byRegion }: Pick<Providers, 'byRegion'>,
): Promise<SpoolProvider | undefined> {
  for (const candidate of [desiredRegion, region]) {
    const provider = candidate === null ? undefined : byRegion.get(candidate)
    if (!provider || !hasSpool(provider)) continue
    const state = await provider.inspect(id)
    if (state === 'absent') continue
    // A stop would also interrupt a capture of the files.
    if (state !== 'stopped') await provider.stop(id)
    return provider
  }
  return undefined
}

const hasSpool = (provider: Provider): provider is SpoolProvider => provider.readSpool !== undefined

async function storeSpool(
  { id, report_epoch: storedEpoch }: SpooledBox,
  provider: SpoolProvider,
  { ingest, log, signal }: CollectSpoolOptions,
): Promise<void> {
  const parseLine = createLineParser(id, log)
  const first = await findFirstUnstored(provider.readSpool(id), storedEpoch, parseLine)
  let [index, count] = [0, 0]
  for await (const segment of provider.readSpool(id)) {
    if (index++ < first) continue
    const texts = splitLines(segment)
    let segmentEpoch: string | null = null
    for (let from = 0; from < texts.length; from += MAX_BATCH_LINES) {
      signal.throwIfAborted()
      const valid = parseValidLines(texts.slice(from, from + MAX_BATCH_LINES), segmentEpoch, parseLine)
      segmentEpoch = valid.epoch
      for (const { epoch, reports } of groupLines(valid.lines).batches)
        if (reports.length > 0) await ingest.apply(id, epoch, reports)
      if (valid.problem !== null) {
        // The rest of the segment does not count for the agent either.
        log.warn({ boxId: id, problem: valid.problem }, 'the spool of a box has an invalid line')
        break
      }
      count += valid.lines.length
      if (count > MAX_LINES) return log.warn({ boxId: id }, 'the spool of a box has too many reports')
      // Other boxes come first: without a report to commit, the loop would not wait for anything.
      await setImmediate()
    }
  }
}

/**
 * The index of the first segment with reports of the epoch that was stored last; 0 when there is none. The segments before it
 * are of earlier epochs: their reports are stored, and are not recognized by their numbers.
 */
async function findFirstUnstored(
  segments: AsyncIterable<Buffer>,
  storedEpoch: string | null,
  parseLine: LineParser,
): Promise<number> {
  if (storedEpoch === null) return 0
  let index = 0
  for await (const segment of segments) {
    const [line] = parseValidLines(splitLines(segment, 1), null, parseLine).lines
    if (line?.type === 'report' && line.epoch === storedEpoch) return index
    index += 1
  }
  return 0
}

/** The complete lines up to the first one that is longer than a report, and not more than `max`. */
function splitLines(segment: Buffer, max = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = []
  let from = 0
  while (lines.length < max) {
    const end = segment.indexOf(NEWLINE, from)
    if (end === -1 || end - from > TUNNEL_LIMITS.reportBytes) break
    lines.push(segment.toString('utf8', from, end))
    from = end + 1
  }
  return lines
}

type ValidLines = { lines: ReportLine[]; epoch: string | null; problem: string | null }

/**
 * The lines before the first invalid one, and what is wrong with that one. A segment has one epoch: a line of another one is
 * invalid, because each change costs a commit.
 * @param segmentEpoch null: that of the first report
 */
function parseValidLines(
  texts: readonly string[],
  segmentEpoch: string | null,
  parseLine: LineParser,
): ValidLines {
  const lines: ReportLine[] = []
  let epoch = segmentEpoch
  for (const text of texts) {
    try {
      const line = parseLine(text)
      if (line.type === 'report') {
        epoch ??= line.epoch
        if (line.epoch !== epoch) return { lines, epoch, problem: 'another epoch than the segment' }
      }
      lines.push(line)
    } catch (error) {
      if (!(error instanceof InvalidReportError)) throw error
      return { lines, epoch, problem: error.message }
    }
  }
  return { lines, epoch, problem: null }
}
