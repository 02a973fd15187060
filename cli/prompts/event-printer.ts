// Prints the events of a run: as text, or as one JSON object per line.
import type { PromptEvent, QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { type Color, colorize } from '../output/colors.ts'
import { formatJson, sanitize } from '../output/print.ts'
import { sanitizeText, shorten, summarizeInput } from './terminal-text.ts'

export type PrinterOptions = { json?: boolean; quiet?: boolean; reasoning?: boolean }

export type EventPrinter = {
  /** `active`: the run in progress, if any. */
  printQueued(queued: QueuedPrompt, active: Run | null): Promise<void>
  /** Call before the first event. */
  printRun(run: Run): Promise<void>
  printEvent(event: PromptEvent): Promise<void>
  printEnd(run: Run): Promise<void>
  /** Whether an event with this text was printed as an error. */
  hasPrintedError(text: string): boolean
}

/** Writes throw the signal's reason once it is aborted. */
export const createEventPrinter = (options: PrinterOptions, signal: AbortSignal): EventPrinter =>
  options.json ? createJsonPrinter(signal) : createTextPrinter(options, signal)

function createJsonPrinter(signal: AbortSignal): EventPrinter {
  const write = (value: unknown) => writeWithBackpressure(process.stdout, `${formatJson(value)}\n`, signal)
  return {
    printQueued: (queued, active) => write({ type: 'queued', queued, active }),
    printRun: (run) => write({ type: 'run', run }),
    printEvent: write,
    printEnd: (run) => write({ type: 'run.done', run }),
    hasPrintedError: () => false,
  }
}

/** The width of short lines when stderr is not a terminal. */
const DEFAULT_COLUMNS = 160

/** The answer of the coding agent is on stdout, everything else on stderr: a pipe gets only the answer. */
function createTextPrinter(
  { quiet = false, reasoning = false }: PrinterOptions,
  signal: AbortSignal,
): EventPrinter {
  let hasText = false
  let lastError: string | null = null

  async function print(stream: NodeJS.WriteStream, text: string, color: Color | null): Promise<void> {
    const clean = sanitizeText(text).replace(/\n+$/, '')
    if (clean !== '') await writeWithBackpressure(stream, `${colorize(clean, color, stream)}\n`, signal)
  }
  /** One line. */
  async function printShort(prefix: string, text: string): Promise<void> {
    const width = ((process.stderr.isTTY && process.stderr.columns) || DEFAULT_COLUMNS) - prefix.length
    await print(process.stderr, `${prefix}${shorten(text, Math.max(20, width))}`.trimEnd(), 'dim')
  }

  return {
    async printQueued({ position }, active) {
      const reason = active === null ? '' : `, while ${sanitize(active.id)} is in progress`
      if (!quiet) await print(process.stderr, `queued: position ${position}${reason}`, 'dim')
    },
    printRun: async () => undefined,
    async printEvent({ type, text, tool }) {
      if (type === 'text' || (type === 'done' && !hasText)) {
        hasText ||= (text ?? '').trim() !== ''
        return print(process.stdout, text ?? '', null)
      }
      if (type === 'error') {
        lastError = text
        return print(process.stderr, text ?? 'error', 'red')
      }
      if (quiet) return
      if (type === 'tool' && tool !== null)
        return printShort(`> ${shorten(tool.name, 60)} `, summarizeInput(tool.input))
      if (type === 'tool_result' && text !== null && text.trim() !== '') return printShort('  ', text)
      if (type === 'notice' && text !== null) return printShort('note: ', text)
      if (type === 'reasoning' && reasoning) return print(process.stderr, text ?? '', 'dim')
    },
    printEnd: async () => undefined,
    hasPrintedError: (text) => lastError?.trim() === text.trim(),
  }
}
