// Sends control lines to the runner of an attached command (see native/run.c).
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Offsets } from '../../../shared/api/processes.ts'

export type ControlFifo = {
  /** The client has processed the output up to these offsets. */
  acknowledge(offsets: Offsets): void
  endStdin(): void
  detach(): void
  close(): void
}

/** The runner may be waiting for disk space and not read for some time. */
const RETRY_MS = 50

/** The runner has exited, or is the shell runner, which has no control FIFO. */
const NO_READER_ERRORS: readonly (string | undefined)[] = ['ENXIO', 'EPIPE', 'ENOENT']

export function openControlFifo(dir: string): ControlFifo {
  const path = join(dir, 'control')
  let fd: number | null = null
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let acknowledgement: string | null = null
  const commands: string[] = []

  const close = () => {
    isClosed = true
    clearTimeout(timer)
    if (fd !== null) closeSync(fd)
    fd = null
  }
  const flush = () => {
    timer = undefined
    try {
      fd ??= openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
      if (acknowledgement !== null) writeSync(fd, acknowledgement)
      acknowledgement = null
      for (let line = commands[0]; line !== undefined; line = commands[0]) {
        writeSync(fd, line)
        commands.shift()
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (NO_READER_ERRORS.includes(code)) return close()
      if (code !== 'EAGAIN') throw error
      timer = setTimeout(flush, RETRY_MS).unref()
    }
  }
  const send = (command?: string) => {
    if (isClosed) return
    if (command !== undefined) commands.push(command)
    if (timer === undefined) flush()
  }

  return {
    acknowledge({ stdout, stderr }) {
      acknowledgement = `ack ${stdout} ${stderr}\n`
      send()
    },
    endStdin: () => send('eof\n'),
    detach: () => send('detach\n'),
    close,
  }
}
