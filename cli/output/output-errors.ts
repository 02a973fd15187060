// What happens when stdout or stderr cannot be written: no stack trace, and an exit code that is not a success.
import { writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { getSystemErrorMessage } from 'node:util'
import { CliError, EXIT } from './exit-codes.ts'
import { printError } from './print-error.ts'

/** How long to wait before a write is repeated that would have blocked. */
const EAGAIN_RETRY_MS = 10

type OutputName = 'stdout' | 'stderr'

export type OutputErrorHandlers = {
  /** The reader has closed the pipe, as in `box exec … | head`. */
  onClosedPipe(): void
  /** Every other error, such as a full disk. It has been printed, if stderr can be written. */
  onFailure(): void
}

export function handleOutputErrors({ onClosedPipe, onFailure }: OutputErrorHandlers): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name]
    completeFileWrites(stream)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') return onClosedPipe()
      if (name === 'stdout') printError(toOutputError(name, error))
      onFailure()
    })
  }
}

export function toOutputError(name: OutputName, { errno, message }: NodeJS.ErrnoException): CliError {
  const reason = errno === undefined ? message : getSystemErrorMessage(errno)
  return new CliError(EXIT.failed, `cannot write to ${name}: ${reason}`, { code: 'output_failed' })
}

/**
 * A write to a file may write a part only, at the end of a disk or at a limit of the size of files. Node ignores the rest,
 * and reports success. Writes to a pipe or a terminal are complete.
 */
function completeFileWrites(stream: Writable & { fd: number }): void {
  // Node's streams of pipes and terminals are sockets.
  if ('connecting' in stream) return
  stream._write = (chunk: Buffer | string, encoding, callback) =>
    writeAll(stream.fd, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk, callback)
}

function writeAll(fd: number, bytes: Buffer, callback: (error?: Error | null) => void): void {
  let rest = bytes
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) callback(error as Error)
    else setTimeout(writeAll, EAGAIN_RETRY_MS, fd, rest, callback)
    return
  }
  callback()
}
