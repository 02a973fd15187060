// Prints output chunks: the bytes themselves, with a time before each line, or with --json one object per line.
import type { StreamName } from '../follow/events.ts'
import type { OutputChunk } from '../follow/read-output.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'

export type OutputPrinter = {
  print(chunk: OutputChunk): Promise<void>
  /** Prints the exit event of --json. */
  printExit(exit: object): Promise<void>
}

export type PrinterOptions = { json?: boolean; timestamps?: boolean }

export function createOutputPrinter(
  { json = false, timestamps = false }: PrinterOptions,
  signal: AbortSignal,
): OutputPrinter {
  const printEvent = (event: object) =>
    writeWithBackpressure(process.stdout, `${JSON.stringify(event)}\n`, signal)
  if (json)
    return {
      print: ({ stream, bytes, offset, at }) =>
        printEvent({
          event: stream,
          ...(timestamps && { at }),
          data: bytes.toString('base64'),
          offset,
          nextOffset: offset + bytes.length,
        }),
      printExit: (exit) => printEvent({ event: 'exit', ...exit }),
    }
  const addTimes = timestamps ? createTimePrefixer() : ({ bytes }: OutputChunk) => bytes
  return {
    print: (chunk) => writeWithBackpressure(process[chunk.stream], addTimes(chunk), signal),
    printExit: async () => undefined,
  }
}

const NEWLINE = 0x0a

/** Adds the time to the start of each line; `-` when it is unknown. A line has the time of its first byte. */
export function createTimePrefixer(): (chunk: OutputChunk) => Buffer {
  const isInLine: Record<StreamName, boolean> = { stdout: false, stderr: false }
  return ({ stream, bytes, at }) => {
    const prefix = Buffer.from(`${at ?? '-'} `)
    const parts: Buffer[] = []
    for (let start = 0; start < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, start)
      const end = newline === -1 ? bytes.length : newline + 1
      if (!isInLine[stream]) parts.push(prefix)
      parts.push(bytes.subarray(start, end))
      isInLine[stream] = newline === -1
      start = end
    }
    return Buffer.concat(parts)
  }
}
