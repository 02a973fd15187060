// Prints output chunks: the bytes themselves, with a time before each line, or with --json one object per line.
import type { OutputChunk, StreamName } from '../follow/read-output.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { createLinePrefixer } from '../output/line-prefixer.ts'

export type OutputPrinter = {
  print(chunk: OutputChunk): Promise<void>
  /** Prints the exit event of --json. */
  printExit(exit: object): Promise<void>
  /** Prints the last line of each stream, if it has no newline and is one of several boxes. */
  end(): Promise<void>
}

/** @param lines the output of one of several boxes */
export type PrinterOptions = { json?: boolean; timestamps?: boolean; lines?: BoxLines }

export type BoxLines = {
  boxName: string
  /** Before each line. */
  prefix: string
  /** Runs one write at a time. */
  serial(write: () => Promise<void>): Promise<void>
}

export function createOutputPrinter(
  { json = false, timestamps = false, lines }: PrinterOptions,
  signal: AbortSignal,
): OutputPrinter {
  const printEvent = (event: object) =>
    writeWithBackpressure(
      process.stdout,
      `${JSON.stringify({ ...(lines && { box: lines.boxName }), ...event })}\n`,
      signal,
    )
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
      end: async () => undefined,
    }
  const addTimes = timestamps ? createTimePrefixer() : ({ bytes }: OutputChunk) => bytes
  const write = (stream: StreamName, bytes: Buffer) => writeWithBackpressure(process[stream], bytes, signal)
  if (lines === undefined)
    return {
      print: (chunk) => write(chunk.stream, addTimes(chunk)),
      printExit: async () => undefined,
      end: async () => undefined,
    }
  const prefixers = { stdout: createLinePrefixer(lines.prefix), stderr: createLinePrefixer(lines.prefix) }
  const writeLines = (stream: StreamName, bytes: Buffer) => lines.serial(() => write(stream, bytes))
  return {
    print: (chunk) => writeLines(chunk.stream, prefixers[chunk.stream].add(addTimes(chunk))),
    printExit: async () => undefined,
    async end() {
      for (const stream of ['stdout', 'stderr'] as const) await writeLines(stream, prefixers[stream].end())
    },
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
