// The standard streams of an attached command: forwards stdin, and writes output at the speed of its reader.
import { write } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Attachment } from '../../client/attach/attachment.ts'
import type { OutputChannel } from '../../client/attach/format.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { printMessage } from '../output/print.ts'

const writeFd = promisify(write)
const FD = { stdout: 1, stderr: 2 } as const
const EAGAIN_RETRY_MS = 10

/** Resolves when the bytes are written. Throws the signal's reason. */
export function writeOutput(channel: OutputChannel, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const stream = process[channel]
  return stream.isTTY
    ? writeToTerminal(FD[channel], bytes, signal)
    : writeWithBackpressure(stream, bytes, signal)
}

/**
 * Writes in a thread. Node's streams write to a terminal synchronously: while Ctrl-S pauses the terminal, the process could
 * not respond to pings.
 */
async function writeToTerminal(fd: number, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  for (let start = 0; start < bytes.length; ) {
    signal.throwIfAborted()
    try {
      const { bytesWritten } = await writeFd(fd, bytes, start)
      start += bytesWritten
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
      await sleep(EAGAIN_RETRY_MS, undefined, { signal })
    }
  }
}

/**
 * Forwards stdin until its end, until the command closes its stdin, or until the returned function is called.
 */
export function forwardStdin({ writeStdin, endStdin }: Attachment, stdin: Readable): () => void {
  let isStopped = false
  const forward = async () => {
    for await (const bytes of stdin) if (!(await writeStdin(bytes))) return
    endStdin()
  }
  forward().catch((error) => {
    if (isStopped) return
    printMessage(`cannot read stdin: ${error.message}.`)
    endStdin()
  })
  return () => {
    isStopped = true
    stdin.destroy()
  }
}
