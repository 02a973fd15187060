// Creates the coordinator's log on stderr: JSON lines, or short lines for a terminal.
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { type Logger, pino } from 'pino'
import { LOG_FILE } from '../../../shared/coordinator-process.ts'
import { createLogDestination } from '../../../shared/log-destination.ts'
import type { BaseSettings } from '../settings.ts'
import { createLogRotation } from './rotate-log.ts'
import { serializeError } from './serialize-error.ts'

/** Maps the id of a box to its name. A line with a known boxId gets the name as `box`. */
export type BoxNames = Map<string, string>

const STDERR = 2

/** Lines are written synchronously, so that none is lost when the process exits. */
export async function createLogger(
  { logLevel, logFormat, dataDir }: Pick<BaseSettings, 'logLevel' | 'logFormat' | 'dataDir'>,
  boxNames: BoxNames,
): Promise<Logger> {
  const isPretty = logFormat === 'pretty' || (logFormat === 'auto' && isatty(STDERR))
  // The module is loaded only for the pretty format.
  const format = isPretty ? (await import('./pretty-line.ts')).createLineFormatter(process.stderr) : undefined
  const rotate = createLogRotation({ fd: STDERR, path: join(dataDir, LOG_FILE) })
  const write = (bytes: Uint8Array) => {
    rotate()
    return writeSync(STDERR, bytes)
  }
  return createLoggerFor(write, { level: logLevel, boxNames, format })
}

type LoggerOptions = {
  level: BaseSettings['logLevel']
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
