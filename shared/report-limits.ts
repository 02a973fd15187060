// Limits of what agents report. They are not beside the schemas of the reports, which the agent does not load: it sends reports,
// and the coordinator validates them.
import { LIMITS } from './limits.ts'

/** The running attached commands of one box are far fewer. */
export const MAX_SURVIVING_COMMANDS = 1000

/** Maximum bytes of one command.output report. */
export const OUTPUT_CHUNK_BYTES = 128 * 1024

/** Seconds that one sample describes. Samples start at multiples of this, since the epoch. */
export const SAMPLE_SECONDS = 30
/** File systems, and interfaces, of one sample. The agent selects the largest and the busiest. */
export const MAX_SAMPLE_GROUPS = 16

/** Seconds between two snapshots. */
export const SNAPSHOT_SECONDS = 60
/** Processes of one snapshot: those with the most CPU usage, then those with the most memory. */
export const MAX_SNAPSHOT_PROCESSES = 1000
/** Listening ports of one snapshot or report. */
export const MAX_LISTENING_PORTS = 1000
/** Characters of a command line in a snapshot. */
export const SNAPSHOT_COMMAND_CHARS = 256
/** Characters of the `delta` and `ports` texts in reports. A report line has at most 256 KiB. */
export const MAX_DELTA_CHARS = 160 * 1024

/** 1 PiB. */
export const MAX_RSS_KIB = 2 ** 40
/** The maximum of an integer that a box reports. Sums of such integers stay exact JavaScript numbers. */
export const MAX_REPORTED_INTEGER = 2 ** 50

/** Truncates a command's text to the stored length without splitting a surrogate pair. */
export function truncateCommand(text: string): { command: string; commandTruncated: boolean } {
  if (text.length <= LIMITS.commandChars) return { command: text, commandTruncated: false }
  const last = text.charCodeAt(LIMITS.commandChars - 1)
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff
  const length = isHighSurrogate ? LIMITS.commandChars - 1 : LIMITS.commandChars
  return { command: text.slice(0, length), commandTruncated: true }
}

export const replaceControlCharacters = (text: string): string => text.replace(/\p{C}/gu, '\uFFFD')
