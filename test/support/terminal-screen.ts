// Compares terminals: everything that a person sees, and the modes that decide what further input and output do.
import headless, { type IBufferCell, type Terminal } from '@xterm/headless'
import { useUnicode11 } from '../../agent/terminal/unicode-widths.ts'
import { type Attributes, attributesOf, internalsOf } from '../../agent/terminal/xterm-internals.ts'

export type { Terminal }

/** Has the widths of the terminal in the dashboard. */
export function createTerminal(cols: number, rows: number): Terminal {
  const terminal = new headless.Terminal({
    cols,
    rows,
    scrollback: 1000,
    allowProposedApi: true,
    logLevel: 'off',
  })
  useUnicode11(terminal)
  return terminal
}

export const writeTerminal = (terminal: Terminal, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => terminal.write(data, resolve))

/** Mode and number of a color. The unused bits of a color have old values. */
function describeColor(value: number): string {
  const mode = (value >> 24) & 3
  if (mode === 0) return ''
  return `${mode}:${value & (mode === 3 ? 0xffffff : 0xff)}`
}

/** Without hyperlinks, which a screen loses. */
function describeAttributes({ fg, bg, extended }: Attributes, underline: number): string {
  // Without the flags of extended attributes and protected characters, which do not affect how a cell is displayed, and of
  // the underline, which has a style.
  const flags = [(fg >>> 26) & ~0b100, (bg >>> 26) & ~0b1100]
  const colors = [fg, bg, underline ? extended.underlineColor : 0].map(describeColor)
  return [...flags, underline, ...colors].join(',')
}

function describeCell(cell: IBufferCell | undefined): string {
  if (cell === undefined) return 'none'
  const attributes = attributesOf(cell)
  const background = describeColor(attributes.bg)
  if (cell.getChars() === '') return background && `{${background}}`
  const style = describeAttributes(attributes, attributes.getUnderlineStyle())
  return cell.getChars() + (style === '0,0,0,,,' ? '' : `{${style}}`)
}

/** The lines of the scrollback and of the screen, with attributes. */
export function describeLines(terminal: Terminal): string[] {
  const { active } = terminal.buffer
  return Array.from({ length: active.length }, (_, y) => {
    const line = active.getLine(y)
    return Array.from({ length: terminal.cols }, (_, x) => describeCell(line?.getCell(x)) || '·')
      .join('')
      .replace(/·+$/, '')
  })
}

export function describeTerminal(terminal: Terminal) {
  const { active } = terminal.buffer
  const { coreService, coreMouseService, buffer, _charsetService, _inputHandler } = internalsOf(terminal)
  const attributes = _inputHandler._curAttrData
  return {
    lines: describeLines(terminal),
    buffer: active.type,
    cursor: [active.cursorX, active.cursorY, active.baseY],
    attributes: describeAttributes(attributes, attributes.getUnderlineStyle()),
    modes: { ...terminal.modes, synchronizedOutputMode: false },
    mouseEncoding: coreMouseService.activeEncoding,
    isCursorHidden: coreService.isCursorHidden,
    cursorStyle: coreService.decPrivateModes.cursorStyle,
    scrollRegion: [buffer.scrollTop, buffer.scrollBottom],
    tabs: Array.from({ length: terminal.cols }, (_, x) => Boolean(buffer.tabs[x])),
    charsets: [_charsetService.glevel, ...[0, 1].map((level) => _charsetService._charsets[level]?.q ?? null)],
    title: _inputHandler._windowTitle,
  }
}
