// Prints output chunks: the bytes themselves, or with --json one object per line.
import type { OutputChunk } from '../follow/read-output.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'

export type OutputPrinter = {
  print(chunk: OutputChunk): Promise<void>
  /** Prints the exit event of --json. */
  printExit(exit: object): Promise<void>
}

export function createOutputPrinter(
  { json = false }: { json?: boolean },
  signal: AbortSignal,
): OutputPrinter {
  const printEvent = (event: object) =>
    writeWithBackpressure(process.stdout, `${JSON.stringify(event)}\n`, signal)
  if (!json)
    return {
      print: ({ stream, bytes }) => writeWithBackpressure(process[stream], bytes, signal),
      printExit: async () => undefined,
    }
  return {
    print: ({ stream, bytes, offset }) =>
      printEvent({
        event: stream,
        data: bytes.toString('base64'),
        offset,
        nextOffset: offset + bytes.length,
      }),
    printExit: (exit) => printEvent({ event: 'exit', ...exit }),
  }
}
