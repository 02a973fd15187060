// The terminal emulator. It answers no queries of programs: what a box prints must not become input.
import { FitAddon } from '@xterm/addon-fit'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { Terminal } from '@xterm/xterm'
import type { TerminalSize } from '../../client/attach/format.ts'
import type { OutputSink } from '../../client/attach/sink-writer.ts'

export type EmulatorOptions = {
  element: HTMLElement
  /** Pixels. */
  fontSize: number
  onInput(text: string): void
  /** The text of a paste event. */
  onPaste(text: string): void
  onLink(uri: string): void
  /** The focus is to be moved out of the terminal, which uses the tab key. */
  onLeave(): void
}

export type Emulator = {
  /** Its functions resolve when the bytes are displayed. */
  sink: OutputSink
  /** The size that fills the element. Null: it is not laid out. */
  getFittingSize(): TerminalSize | null
  getSize(): TerminalSize
  setSize(size: TerminalSize): void
  focus(): void
  paste(text: string): void
  /** A key of a keyboard that the device does not have. */
  press(key: ScreenKey): void
  setFontSize(pixels: number): void
  /** Whether input is accepted. The text stays. */
  setEnabled(isEnabled: boolean): void
  dispose(): void
}

export type ScreenKey = 'Escape' | 'Tab' | 'Left' | 'Up' | 'Down' | 'Right'

const ARROWS: Partial<Record<ScreenKey, string>> = { Left: 'D', Up: 'A', Down: 'B', Right: 'C' }

const SCROLLBACK_LINES = 10_000
const RESET = '\u001bc'
/** DA, DSR, DECRQM, DECREQTPARM, XTVERSION, the size of the window, and the state of the keyboard. */
const QUERIES = [
  { final: 'c' },
  { prefix: '>', final: 'c' },
  { prefix: '=', final: 'c' },
  { final: 'n' },
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' },
  { prefix: '?', intermediates: '$', final: 'p' },
  { final: 'x' },
  { prefix: '>', final: 'q' },
  { final: 't' },
  { prefix: '?', final: 'u' },
]
/** DECRQSS and XTGETTCAP. */
const DEVICE_QUERIES = [
  { intermediates: '$', final: 'q' },
  { intermediates: '+', final: 'q' },
]
/** Colours, which a program may also set. */
const COLOUR_SEQUENCES = [4, 10, 11, 12]
const CLIPBOARD_SEQUENCE = 52

const THEME = {
  background: '#16191d',
  foreground: '#e4e7eb',
  cursor: '#e4e7eb',
  selectionBackground: '#3f5f8f',
  black: '#3c434c',
  red: '#ff8f86',
  green: '#7fd79a',
  yellow: '#e3c567',
  blue: '#8ab4ff',
  magenta: '#e29bf0',
  cyan: '#6fd3dc',
  white: '#d5dae0',
  brightBlack: '#9aa3ad',
  brightRed: '#ffaaa3',
  brightGreen: '#a0e8b5',
  brightYellow: '#f3dc8d',
  brightBlue: '#aecbff',
  brightMagenta: '#efbdf8',
  brightCyan: '#9ce6ec',
  brightWhite: '#ffffff',
}

export function createEmulator(options: EmulatorOptions): Emulator {
  const { element, fontSize, onInput, onPaste, onLink, onLeave } = options
  const terminal = new Terminal({
    // The addon for the widths of Unicode 11 needs it.
    allowProposedApi: true,
    cursorBlink: false,
    fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace',
    fontSize,
    scrollback: SCROLLBACK_LINES,
    theme: THEME,
    linkHandler: { activate: (_event, uri) => onLink(uri) },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  // As in agent/terminal/unicode-widths.ts.
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  terminal.loadAddon(new WebLinksAddon((_event, uri) => onLink(uri)))
  ignoreQueries(terminal)
  terminal.attachCustomKeyEventHandler((event) => handleKey(event, terminal, onLeave))
  terminal.onData(onInput)
  terminal.onBinary(onInput)
  element.addEventListener(
    'paste',
    (event) => {
      event.preventDefault()
      event.stopImmediatePropagation()
      const text = event.clipboardData?.getData('text/plain')
      if (text) onPaste(text)
    },
    { capture: true },
  )
  addNonceToStyles()
  terminal.open(element)
  const write = (data: string | Uint8Array) => new Promise<void>((resolve) => terminal.write(data, resolve))

  return {
    sink: {
      write: (_channel, bytes) => write(bytes),
      async drawScreen(bytes, size) {
        await write(RESET)
        setSize(terminal, size)
        await write(bytes)
      },
      resize: (size) => setSize(terminal, size),
    },
    getFittingSize() {
      const size = fit.proposeDimensions()
      return size && Number.isFinite(size.cols) && Number.isFinite(size.rows)
        ? { cols: Math.min(size.cols, 1000), rows: Math.min(size.rows, 1000) }
        : null
    },
    getSize: () => ({ cols: terminal.cols, rows: terminal.rows }),
    setSize: (size) => setSize(terminal, size),
    focus: () => terminal.focus(),
    paste: (text) => terminal.paste(text),
    press(key) {
      const arrow = ARROWS[key]
      const prefix = terminal.modes.applicationCursorKeysMode ? '\u001bO' : '\u001b['
      terminal.input(arrow === undefined ? (key === 'Tab' ? '\t' : '\u001b') : prefix + arrow)
    },
    setFontSize(pixels) {
      terminal.options.fontSize = pixels
    },
    setEnabled(isEnabled) {
      terminal.options.disableStdin = !isEnabled
      terminal.options.cursorInactiveStyle = isEnabled ? 'outline' : 'none'
    },
    dispose: () => terminal.dispose(),
  }
}

function setSize(terminal: Terminal, { cols, rows }: TerminalSize): void {
  if (terminal.cols !== cols || terminal.rows !== rows) terminal.resize(cols, rows)
}

function ignoreQueries({ parser }: Terminal): void {
  const ignore = () => true
  for (const query of QUERIES) parser.registerCsiHandler(query, ignore)
  for (const query of DEVICE_QUERIES) parser.registerDcsHandler(query, ignore)
  for (const id of COLOUR_SEQUENCES) parser.registerOscHandler(id, (data) => data.includes('?'))
  parser.registerOscHandler(CLIPBOARD_SEQUENCE, ignore)
}

/** Returns whether the program gets the key. */
function handleKey(event: KeyboardEvent, terminal: Terminal, onLeave: () => void): boolean {
  if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true
  // The browser pastes, and the event of the paste follows.
  if (event.code === 'KeyV') return false
  if (event.code !== 'KeyC' && event.code !== 'KeyL') return true
  event.preventDefault()
  if (event.type !== 'keydown') return false
  if (event.code === 'KeyL') onLeave()
  else if (terminal.hasSelection()) copy(terminal.getSelection())
  return false
}

function copy(text: string): void {
  // Plain HTTP from another machine has no clipboard. The emulator handles the event of the command.
  if (navigator.clipboard === undefined) document.execCommand('copy')
  else void navigator.clipboard.writeText(text).catch(() => document.execCommand('copy'))
}

let hasNonce = false

/** The emulator creates style elements, which the policy of the page allows only with its nonce. */
function addNonceToStyles(): void {
  if (hasNonce) return
  hasNonce = true
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=boxwood-nonce]')?.content ?? ''
  const createElement = document.createElement.bind(document)
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = createElement(name, options)
    if (name === 'style') element.nonce = nonce
    return element
  }
}
