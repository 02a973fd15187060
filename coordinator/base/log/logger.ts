// Creates the coordinator's log on stderr: JSON lines, or short lines for a terminal.
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type Logger, pino } from 'pino'
import { createLogDestination } from '../../../shared/log-destination.ts'
import type { Config } from '../config.ts'
import { serializeError } from './serialize-error.ts'

/** Maps the id of a box to its name. A line with a known boxId gets the name as `box`. */
export type BoxNames = Map<string, string>

const STDERR = 2

/** Lines are written synchronously, so that none is lost when the process exits. */
export async function createLogger(
  { logLevel, logFormat }: Pick<Config, 'logLevel' | 'logFormat'>,
  boxNames: BoxNames,
): Promise<Logger> {
  const isPretty = logFormat === 'pretty' || (logFormat === 'auto' && isatty(STDERR))
  // The module is loaded only for the pretty format.
  const format = isPretty ? (await import('./pretty-line.ts')).createLineFormatter(process.stderr) : undefined
  return createLoggerFor((bytes) => writeSync(STDERR, bytes), { level: logLevel, boxNames, format })
}

type LoggerOptions = {
  level: Config['logLevel']
  boxNames: BoxNames
  /** Formats one line of JSON. Default: the line stays JSON. */
  format?: ((line: string) => string) | undefined
}

export function createLoggerFor(
  write: (bytes: Uint8Array) => number,
  { level, boxNames, format }: LoggerOptions,
): Logger {
  return pino(
    {
      level,
      serializers: { err: serializeError },
      formatters: { log: (fields) => addBoxName(fields, boxNames) },
    },
    createLogDestination(write, format),
  )
}

function addBoxName(fields: Record<string, unknown>, boxNames: BoxNames): Record<string, unknown> {
  const box = typeof fields.boxId === 'string' ? boxNames.get(fields.boxId) : undefined
  return box === undefined ? fields : { box, ...fields }
}
