// Tracks the modes that remote programs set in the local terminal, and creates the bytes that reset them.

/** Private modes (DECSET) that are reset, and whether each is set by default. */
const DEFAULTS = new Map<number, boolean>([
  [1, false], // application cursor keys
  [7, true], // automatic line wrap
  [9, false], // mouse
  [25, true], // visible cursor
  [66, false], // application keypad
  [1000, false], // mouse
  [1001, false],
  [1002, false],
  [1003, false],
  [1004, false], // focus events
  [1005, false], // mouse encodings
  [1006, false],
  [1015, false],
  [1016, false],
  [2004, false], // bracketed paste
  [2026, false], // synchronized output
  // The alternate screen is left at the end: the cursor is restored.
  [47, false],
  [1047, false],
  [1049, false],
])

/** CSI ? … h, CSI ? … l, RIS, or the beginning of one of them at the end of the text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences
const SEQUENCE = /\x1b\[\?([\d;]{1,64})([hl])|\x1b(c)|\x1b(?:\[(?:\?[\d;]{0,64})?)?$/g

/** Attributes, character set, scroll region, keypad mode and key encodings. Keeps the position of the cursor. */
const RESET_STYLE = '\x1b[0m\x1b(B\x1b7\x1b[r\x1b8\x1b>\x1b[>4m'

export type TerminalModes = {
  /** Scans output. Sequences may be split between two calls. */
  scan(bytes: Uint8Array): void
  /** The bytes that restore the default modes. */
  getResetSequence(): string
}

export function createTerminalModes(): TerminalModes {
  const modes = new Map<number, boolean>()
  /** The beginning of a sequence at the end of the scanned bytes. */
  let partial = ''

  return {
    scan(bytes) {
      const text = partial + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
      partial = ''
      for (const [sequence, numbers, final, reset] of text.matchAll(SEQUENCE)) {
        if (reset !== undefined) modes.clear()
        else if (numbers === undefined) partial = sequence
        else
          for (const number of numbers.split(';').map(Number))
            if (DEFAULTS.has(number)) modes.set(number, final === 'h')
      }
    },
    getResetSequence() {
      const changed = [...DEFAULTS].filter(([mode, isSet]) => (modes.get(mode) ?? isSet) !== isSet)
      const resets = changed.map(([mode, isSet]) => `\x1b[?${mode}${isSet ? 'h' : 'l'}`)
      return `${resets.join('')}${RESET_STYLE}`
    },
  }
}
