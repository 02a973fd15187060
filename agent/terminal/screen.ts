// Parses a terminal's output in a headless xterm, whose screen a client without the previous output gets.
import headless from '@xterm/headless'
import { incompleteSuffixLength } from '../../shared/utf8.ts'
import { serialize } from './serialize.ts'
import { useUnicode11 } from './unicode-widths.ts'
import { type Internals, internalsOf } from './xterm-internals.ts'

export type Snapshot = {
  /** Written to an empty terminal of this size, they draw the screen as it is at `offset` of the output. */
  bytes: Buffer
  offset: number
  cols: number
  rows: number
}

export type Screen = {
  /** Takes ownership of the bytes. They are parsed later. */
  write(bytes: Buffer): void
  /** Resizes the screen after the bytes written so far. */
  resize(cols: number, rows: number): void
  /** Bytes that are not parsed yet. */
  pendingBytes(): number
  /** Offset up to which bytes have been parsed. */
  parsedOffset(): number
  /** The screen after the parsed bytes. */
  snapshot(): Snapshot
  close(): void
}

const SCROLLBACK_LINES = 1000
const ESC = 0x1b

/**
 * @param onParsed called after bytes have been parsed
 * @param first the screen at the offset of the first byte that will be written
 */
export function createScreen(
  size: { cols: number; rows: number },
  onParsed: () => void,
  first: { offset: number; screen: Snapshot | null } = { offset: 0, screen: null },
): Screen {
  const { cols, rows } = first.screen ?? size
  const terminal = new headless.Terminal({
    cols,
    rows,
    scrollback: SCROLLBACK_LINES,
    allowProposedApi: true,
    logLevel: 'off',
  })
  useUnicode11(terminal)
  surviveParserErrors(internalsOf(terminal))
  let written = first.offset
  let parsed = first.offset
  /** Offset of an escape sequence or character that is incomplete in the parsed bytes; else the number of parsed bytes. */
  let complete = first.offset
  /** Changes that are not bytes of the output, and wait until earlier bytes are parsed. */
  let queuedChanges = 0
  const isIdle = () => written === parsed && queuedChanges === 0
  let lastBytes: Buffer = Buffer.alloc(0)

  function onChunkParsed(bytes: Buffer): void {
    const end = parsed + bytes.length
    const isInsideSequence = internalsOf(terminal)._inputHandler._parser.currentState !== 0
    lastBytes = bytes.length < 4 ? Buffer.concat([lastBytes, bytes]).subarray(-4) : bytes.subarray(-4)
    // An ESC ends any sequence, so that the current one starts at the last ESC. Without an ESC in this chunk, it started
    // in an earlier one (or with a C1 control character, which programs do not use in UTF-8).
    const start = isInsideSequence ? bytes.lastIndexOf(ESC) : -1
    if (start !== -1) complete = parsed + start
    else if (!isInsideSequence || complete === parsed) complete = end - incompleteSuffixLength(lastBytes)
    parsed = end
    onParsed()
  }

  function queueChange(bytes: Buffer | '', onParsed: () => void): void {
    queuedChanges++
    terminal.write(bytes, () => {
      queuedChanges--
      onParsed()
    })
  }

  if (first.screen !== null) {
    queueChange(first.screen.bytes, () => undefined)
    if (cols !== size.cols || rows !== size.rows) queueChange('', () => terminal.resize(size.cols, size.rows))
  }

  return {
    write(bytes) {
      written += bytes.length
      terminal.write(bytes, () => onChunkParsed(bytes))
    },
    resize(cols, rows) {
      if (isIdle()) return terminal.resize(cols, rows)
      queueChange('', () => terminal.resize(cols, rows))
    },
    pendingBytes: () => written - parsed,
    parsedOffset: () => parsed,
    snapshot: () => ({
      bytes: Buffer.from(serialize(terminal)),
      offset: complete,
      cols: terminal.cols,
      rows: terminal.rows,
    }),
    close: () => terminal.dispose(),
  }
}

/**
 * xterm throws on rare sequences, such as CSI 1 J in the last cell of the alternate screen, from a timer where no caller
 * can catch the error. The remaining bytes of the chunk are then missing on the screen.
 */
function surviveParserErrors({ _writeBuffer, _inputHandler }: Internals): void {
  const parse = _writeBuffer._action
  _writeBuffer._action = (data) => {
    try {
      return parse(data)
    } catch {
      return _inputHandler._parser.reset()
    }
  }
}
