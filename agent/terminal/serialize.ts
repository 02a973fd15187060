// Serialises a headless xterm: the returned text, written to an empty terminal of the same size, restores the scrollback,
// the screen, the cursor and the modes. (@xterm/addon-serialize loses the attributes at the switch to the alternate
// screen, the scroll region, tab stops, line drawing characters, the visibility of the cursor and the format of mouse reports.)
import type { IBuffer, IBufferCell, IBufferLine, Terminal } from '@xterm/headless'
import { backgroundSgr, hasBackground, sgr } from './sgr.ts'
import { attributesOf, type InternalBuffer, type Internals, internalsOf } from './xterm-internals.ts'

const ESC = '\x1b'
const CSI = `${ESC}[`
const RESET_ATTRIBUTES = `${CSI}0m`

/** All data that was written must have been parsed. */
export function serialize(terminal: Terminal): string {
  const { normal, alternate, active } = terminal.buffer
  const internals = internalsOf(terminal)
  const parts = [serializeRows(normal, terminal.cols)]
  if (active.type === 'alternate') {
    const main = internals._bufferService.buffers.normal
    // The program returns to the cursor of the main screen when it leaves the alternate screen.
    parts.push(tabStops(main, terminal.cols), scrollRegion(main), savedCursor(main), `${CSI}?1049h`)
    parts.push(`${RESET_ATTRIBUTES}${CSI}r${CSI}2J${CSI}H`, serializeRows(alternate, terminal.cols))
  }
  const { buffer } = internals
  parts.push(tabStops(buffer, terminal.cols), savedCursor(buffer), `${ESC}7`)
  parts.push(scrollRegion(buffer), cursor(terminal, internals))
  parts.push(sgr(internals._inputHandler._curAttrData), charsets(internals), modes(terminal, internals))
  return parts.join('')
}

const moveTo = (row: number, column: number): string => `${CSI}${row + 1};${column + 1}H`

function serializeRows(buffer: IBuffer, cols: number): string {
  const rows: string[] = []
  for (let y = 0; y < buffer.length; y++) {
    const line = buffer.getLine(y)
    if (line === undefined) continue
    // Beyond the last line, getLine() may return the first one.
    const next = y + 1 < buffer.length ? buffer.getLine(y + 1) : undefined
    rows.push(serializeRow(line, cols))
    if (next !== undefined && !(next.isWrapped && wraps(line, next, cols))) rows.push('\r\n')
  }
  return rows.join('')
}

/** Whether the terminal moves to the next line by itself when the first character of that line is written. */
function wraps(line: IBufferLine, next: IBufferLine, cols: number): boolean {
  const first = next.getCell(0)
  if (!first?.getChars()) return false
  const isFull = (column: number) => {
    const cell = line.getCell(column)
    return cell !== undefined && (cell.getChars() !== '' || cell.getWidth() === 0)
  }
  // A wide character does not fit into the last column.
  return isFull(cols - 1) || (first.getWidth() === 2 && isFull(cols - 2))
}

/** Ends with default attributes: a line feed fills a new line with the background. */
function serializeRow(line: IBufferLine, cols: number): string {
  let text = ''
  let style = RESET_ATTRIBUTES
  /** Erased cells since the last character, and their style. */
  let erased = 0
  let erasedStyle = RESET_ATTRIBUTES
  const setStyle = (next: string) => {
    if (next !== style) text += next
    style = next
  }
  const writeErased = (isLast: boolean) => {
    if (erased > 0 && erasedStyle !== RESET_ATTRIBUTES) {
      setStyle(erasedStyle)
      text += `${CSI}${erased}X`
    }
    if (erased > 0 && !isLast) text += `${CSI}${erased}C`
    erased = 0
  }
  for (let column = 0; column < cols; column++) {
    const cell = line.getCell(column)
    if (cell === undefined || cell.getWidth() === 0) continue
    const chars = cell.getChars()
    const cellStyle = styleOf(cell)
    if (chars === '') {
      if (erased > 0 && cellStyle !== erasedStyle) writeErased(false)
      erasedStyle = cellStyle
      erased++
      continue
    }
    writeErased(false)
    setStyle(cellStyle)
    text += chars
  }
  const isPartial = erased > 0 && erased < cols
  const hasDefaultEnd = erasedStyle === RESET_ATTRIBUTES
  writeErased(true)
  setStyle(RESET_ATTRIBUTES)
  // The terminal filled a line that it wrapped into with the background of the characters.
  if (line.isWrapped && isPartial && hasDefaultEnd) text += `${CSI}K`
  return text
}

function styleOf(cell: IBufferCell): string {
  const attributes = attributesOf(cell)
  if (cell.getChars() !== '') return sgr(attributes)
  return hasBackground(attributes) ? backgroundSgr(attributes) : RESET_ATTRIBUTES
}

function savedCursor({ savedX, savedY, ybase, savedCurAttrData }: InternalBuffer): string {
  return moveTo(Math.max(0, savedY - ybase), savedX) + sgr(savedCurAttrData)
}

const DEFAULT_TAB_STOP = 8

function tabStops({ tabs }: InternalBuffer, cols: number): string {
  const columns = Array.from({ length: cols }, (_, column) => column)
  if (columns.every((column) => Boolean(tabs[column]) === (column % DEFAULT_TAB_STOP === 0))) return ''
  const stops = columns.filter((column) => tabs[column])
  return `${CSI}3g${stops.map((column) => `${moveTo(0, column)}${ESC}H`).join('')}`
}

/** Moves the cursor to the first column of the first row. */
const scrollRegion = ({ scrollTop, scrollBottom }: InternalBuffer): string =>
  `${CSI}${scrollTop + 1};${scrollBottom + 1}r`

function cursor(terminal: Terminal, { buffer: { scrollTop } }: Internals): string {
  const { cols, modes } = terminal
  const { cursorX, cursorY, baseY } = terminal.buffer.active
  // In origin mode rows count from the first row of the scroll region.
  const [origin, row] = modes.originMode ? [`${CSI}?6h`, cursorY - scrollTop] : ['', cursorY]
  if (cursorX < cols) return origin + moveTo(row, cursorX)
  // After a character in the last column the cursor stays there, and the next character wraps.
  const line = terminal.buffer.active.getLine(baseY + cursorY)
  const isWide = line?.getCell(cols - 1)?.getWidth() === 0
  const column = isWide ? cols - 2 : cols - 1
  const cell = line?.getCell(column)
  return `${origin}${moveTo(row, column)}${cell ? styleOf(cell) : ''}${cell?.getChars() || ' '}`
}

/** The line drawing characters of ESC ( 0 and ESC ) 0. */
function charsets({ _charsetService: { glevel, _charsets } }: Internals): string {
  const isLineDrawing = (level: number) => _charsets[level]?.q === '─'
  const g0 = isLineDrawing(0) ? `${ESC}(0` : ''
  const g1 = isLineDrawing(1) ? `${ESC})0` : ''
  return `${g0}${g1}${glevel === 1 ? '\x0e' : ''}`
}

const MOUSE_MODES = { none: null, x10: 9, vt200: 1000, drag: 1002, any: 1003 } as const
const MOUSE_ENCODINGS = { DEFAULT: null, SGR: 1006, SGR_PIXELS: 1016 } as const
const CURSOR_STYLES = { block: 2, underline: 4, bar: 6 } as const

function modes(terminal: Terminal, { coreService, coreMouseService, _inputHandler }: Internals): string {
  const { modes } = terminal
  const { cursorStyle, cursorBlink } = coreService.decPrivateModes
  const privateModes: (number | null | false)[] = [
    modes.applicationCursorKeysMode && 1,
    modes.applicationKeypadMode && 66,
    modes.reverseWraparoundMode && 45,
    modes.bracketedPasteMode && 2004,
    modes.sendFocusMode && 1004,
    MOUSE_MODES[modes.mouseTrackingMode],
    MOUSE_ENCODINGS[coreMouseService.activeEncoding],
  ]
  const title = _inputHandler._windowTitle.replace(/\p{Cc}/gu, '')
  return [
    ...privateModes.map((mode) => (mode ? `${CSI}?${mode}h` : '')),
    modes.insertMode ? `${CSI}4h` : '',
    modes.wraparoundMode ? '' : `${CSI}?7l`,
    coreService.isCursorHidden ? `${CSI}?25l` : '',
    cursorStyle === undefined ? '' : `${CSI}${CURSOR_STYLES[cursorStyle] - (cursorBlink ? 1 : 0)} q`,
    title === '' ? '' : `${ESC}]2;${title}${ESC}\\`,
  ].join('')
}
