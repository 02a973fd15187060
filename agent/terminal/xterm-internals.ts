// The state of a headless xterm that its public API does not have. The version of the package is fixed for this reason.
import type { IBufferCell, Terminal } from '@xterm/headless'

/** Attributes of a cell, or of the next character. */
export type Attributes = Pick<
  IBufferCell,
  'isBold' | 'isDim' | 'isItalic' | 'isBlink' | 'isInverse' | 'isInvisible' | 'isStrikethrough' | 'isOverline'
> & {
  /** Bits 0 to 23 are the color, bits 24 and 25 its mode. */
  fg: number
  bg: number
  /** 0: no underline. 1 to 5: the parameter after `4:` in SGR. */
  getUnderlineStyle(): number
  extended: { underlineColor: number }
}

export type InternalBuffer = {
  /** First and last row of the scroll region, from 0. */
  scrollTop: number
  scrollBottom: number
  tabs: Record<number, boolean | undefined>
  /** The cursor of ESC 7. savedY counts from the first line of the scrollback. */
  savedX: number
  savedY: number
  savedCurAttrData: Attributes
  ybase: number
}

export type Internals = {
  buffer: InternalBuffer
  _bufferService: { buffers: { normal: InternalBuffer } }
  coreService: {
    isCursorHidden: boolean
    decPrivateModes: { cursorStyle?: 'block' | 'underline' | 'bar'; cursorBlink?: boolean }
  }
  coreMouseService: { activeEncoding: 'DEFAULT' | 'SGR' | 'SGR_PIXELS' }
  _charsetService: { glevel: number; _charsets: (Record<string, string | undefined> | undefined)[] }
  _inputHandler: {
    _curAttrData: Attributes
    _windowTitle: string
    /** 0: not inside an escape sequence. */
    _parser: { currentState: number; reset(): void }
  }
  _writeBuffer: { _action(data: string | Uint8Array): unknown }
}

export const internalsOf = (terminal: Terminal): Internals =>
  (terminal as unknown as { _core: Internals })._core

/** The cells of a buffer have all attributes. */
export const attributesOf = (cell: IBufferCell): Attributes => cell as unknown as Attributes
