// The terminal of this process: raw mode, size, and restoring it in every case.
import { spawnSync } from 'node:child_process'
import type { TerminalSize } from '../../client/attach/format.ts'
import { createTerminalModes } from './terminal-modes.ts'

export type RawTerminal = {
  /** Scans output that is about to be written. */
  scan(bytes: Uint8Array): void
  /** The bytes that reset the modes and clear the screen. */
  getClearSequence(): Buffer
  /** Prints lines while the terminal is in raw mode. */
  print(text: string): void
  /** Leaves raw mode and resets the modes that remote programs have set. May be called more than once. */
  restore(): void
}

const CLEAR = '\x1b[H\x1b[2J'
/** Limits of the API. */
const MAX_SIZE = 1000

/** stdin must be a terminal. */
export function enterRawMode(): RawTerminal {
  const modes = createTerminalModes()
  let isRaw = true
  const restore = () => {
    if (!isRaw) return
    isRaw = false
    process.off('exit', restore)
    if (process.stdout.isTTY) process.stdout.write(modes.getResetSequence())
    process.stdin.setRawMode(false)
  }
  // The event also follows an uncaught exception, before the stack is printed.
  process.on('exit', restore)
  process.stdin.setRawMode(true)
  // Node converts newlines of the output in raw mode, which breaks programs that move the cursor with newlines.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] })

  return {
    scan: modes.scan,
    getClearSequence() {
      const bytes = Buffer.from(`${modes.getResetSequence()}${CLEAR}`)
      modes.scan(bytes)
      return bytes
    },
    print: (text) => void process.stderr.write(`\r\n${text.replaceAll('\n', '\r\n')}\r\n`),
    restore,
  }
}

/** null when the size is unknown. */
export function getTerminalSize(): TerminalSize | null {
  const { columns, rows } = process.stdout.isTTY ? process.stdout : process.stderr
  if (!columns || !rows) return null
  return { cols: Math.min(columns, MAX_SIZE), rows: Math.min(rows, MAX_SIZE) }
}

/** The value of TERM, if the API accepts it. */
export function getTerm(): string | undefined {
  const { TERM = '' } = process.env
  return /^[\x21-\x7e]{1,64}$/.test(TERM) ? TERM : undefined
}
