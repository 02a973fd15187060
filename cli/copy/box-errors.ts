// Errors of a box during a copy name the box: the other side of the copy may be another box.
import type { EdgeClient } from '../connection/client.ts'
import { CliError } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/** The codes of errors about a file, whose messages do not name the box. */
const FILE_ERROR_CODES = ['invalid_path', 'permission_denied', 'payload_too_large', 'exec_failed']

export function toBoxError(edge: EdgeClient, error: unknown): unknown {
  if (!(error instanceof CliError) || error.code === null || !FILE_ERROR_CODES.includes(error.code))
    return error
  return new CliError(error.exitCode, `${sanitize(edge.boxName)}: ${error.message}`, {
    code: error.code,
    cause: error,
  })
}
