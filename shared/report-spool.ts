// The files of the spool, in which the agent stores reports until they are acknowledged. The coordinator reads those of a
// local box whose agent could not send its reports.

/** The directory of the spool, in the state directory of the agent. */
export const SPOOL_DIRECTORY = 'reports'

const MiB = 1024 * 1024
/** A new segment is started after this size, so a segment is at most one line longer. */
export const SPOOL_SEGMENT_BYTES = MiB
/**
 * Beyond this size the oldest segment is discarded. Twice the size of eight concurrent commands with 1 MiB of each stream,
 * base64-encoded.
 */
export const SPOOL_BYTES = 64 * MiB

const SEGMENT_NAME = /^([0-9]{16})\.ndjson$/

/** The name of a segment file. Names in alphabetical order are in the order of the reports. */
export const formatSegmentName = (firstSeq: number): string => `${String(firstSeq).padStart(16, '0')}.ndjson`

/** Returns the first sequence number of a segment file, or null for the name of another file. */
export function parseSegmentName(name: string): number | null {
  const digits = SEGMENT_NAME.exec(name)?.[1]
  return digits === undefined ? null : Number(digits)
}
