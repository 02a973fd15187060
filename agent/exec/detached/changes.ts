// What a runner says each time that it added to a log of its process: a byte in a FIFO, read while someone follows.
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { STREAMS, type StreamName } from './types.ts'
import { watchFile } from './watch-file.ts'

export type Changes = {
  /** Calls back soon after this log was written to. For one at a time. Returns what ends that. */
  watch(stream: StreamName, changed: () => void): () => void
}

/** As native/run.c writes them. */
const LETTERS: Readonly<Record<StreamName, number>> = { stdout: 0x6f, stderr: 0x65 }

/** One read by whichever process: nothing of it is kept. */
const said = Buffer.allocUnsafeSlow(4096)

function isSaid(letter: number, length: number): boolean {
  for (let at = 0; at < length; at++) if (said[at] === letter) return true
  return false
}

/**
 * The logs of the process in this folder. Where it has no FIFO, or something else in its place, the files themselves are
 * watched: a runner that is a script makes none, and what is in the folder may be anybody's on this box. The FIFO is the
 * faster one: its reader is woken on the processor of the runner, which is about to sleep, where one that watches a file
 * is woken on an idle one, which takes its time to get up.
 */
export function openChanges(folder: string): Changes {
  const following = new Map<StreamName, () => void>()
  const watches = new Map<StreamName, () => void>()
  let fifo: Socket | undefined

  const tell = (stream: StreamName) => following.get(stream)?.()
  const hear = (length: number) => {
    // As much as fits: more may have been said.
    const all = length === said.length
    for (const stream of STREAMS) if (all || isSaid(LETTERS[stream], length)) tell(stream)
  }
  const watchItself = (stream: StreamName) =>
    watches.set(
      stream,
      watchFile(`${folder}/${stream}`, () => tell(stream)),
    )
  const stopListening = () => {
    fifo?.destroy()
    fifo = undefined
  }

  function listen(): void {
    const opened = openFifo(`${folder}/changes`, hear)
    fifo = opened
    // The runner is gone, or it was never one: then the files tell, should anybody write to them still.
    opened?.once('close', () => {
      if (fifo !== opened) return
      fifo = undefined
      for (const stream of following.keys()) watchItself(stream)
      for (const stream of STREAMS) tell(stream)
    })
  }

  return {
    watch(stream, changed) {
      following.set(stream, changed)
      if (fifo === undefined && watches.size === 0) listen()
      if (fifo === undefined) watchItself(stream)
      return () => {
        following.delete(stream)
        watches.get(stream)?.()
        watches.delete(stream)
        if (following.size === 0) stopListening()
      }
    },
  }
}

/** @param hear told how many bytes of `said` are new. undefined: there is none that can be read */
function openFifo(path: string, hear: (length: number) => void): Socket | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    const onread = {
      buffer: said,
      callback(length: number) {
        hear(length)
        return true
      },
    }
    // Refused unless it is a pipe.
    const fifo = new Socket({ fd, readable: true, writable: false, onread })
    // 'close' follows.
    fifo.on('error', () => undefined)
    return fifo.unref()
  } catch {
    if (fd !== undefined) closeSync(fd)
    return undefined
  }
}
