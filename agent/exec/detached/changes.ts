// What a runner says each time that it added to a log of its process, in a FIFO that is read while someone follows.
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { type LogBytes, STREAMS, type StreamName } from './types.ts'
import { watchFile } from './watch-file.ts'

export type Changes = {
  /** Calls back soon after this log was written to. For one at a time. Returns what ends that. */
  watch(stream: StreamName, changed: OnChange): () => void
}

/** @param added what was written, where it was told; to be used before it returns */
export type OnChange = (added?: LogBytes) => void

/** As native/run.c writes them. */
const LETTERS: Readonly<Record<StreamName, number>> = { stdout: 0x6f, stderr: 0x65 }
const TOLD = 1
const TOLD_HEAD_BYTES = 10

/** One read by whichever process: nothing of it is kept. */
const said = Buffer.allocUnsafeSlow(4096)

function isSaid(letter: number, from: number, length: number): boolean {
  for (let at = from; at < length; at++) if (said[at] === letter) return true
  return false
}

type Told = { stream: StreamName; added: LogBytes; end: number }

/** An addition that was told with its bytes: the runner does that only first of all, to who has heard all before. */
function toldFirst(length: number): Told | null {
  const end = TOLD_HEAD_BYTES + said.readUInt16LE(8)
  if (said[0] !== TOLD || end > length) return null
  const stream = STREAMS.find((name) => LETTERS[name] === said[1])
  if (stream === undefined) return null
  return { stream, added: { offset: said.readUIntLE(2, 6), bytes: said.subarray(TOLD_HEAD_BYTES, end) }, end }
}

/**
 * The logs of the process in this folder. Where it has no FIFO, or something else in its place, the files themselves are
 * watched: a runner that is a script makes none, and what is in the folder may be anybody's on this box. The FIFO is the
 * faster one: its reader is woken on the processor of the runner, which is about to sleep, where one that watches a file
 * is woken on an idle one, which takes its time to get up.
 */
export function openChanges(folder: string): Changes {
  const following = new Map<StreamName, OnChange>()
  const watches = new Map<StreamName, () => void>()
  let fifo: Socket | undefined

  const tell = (stream: StreamName, added?: LogBytes) => following.get(stream)?.(added)
  const hear = (length: number) => {
    const told = toldFirst(length)
    const from = told?.end ?? 0
    // As much as fits: more may have been said.
    const all = length === said.length
    if (told !== null) tell(told.stream, told.added)
    for (const stream of STREAMS) if (all || isSaid(LETTERS[stream], from, length)) tell(stream)
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
