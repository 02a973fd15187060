// A program on the whole terminal, such as box top: the alternate screen, and the keys that the user presses.
import { emitKeypressEvents, type Key } from 'node:readline'
import { enterRawMode } from './local-terminal.ts'

export type FullScreen = {
  /** Replaces the screen. The terminal truncates long lines. */
  draw(lines: readonly string[]): void
  /** Restores the terminal and stops reading keys. */
  close(): void
}

/** The alternate screen; no cursor; no line wrap. */
const START = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const HOME = '\u001b[H'
const ERASE_LINE_END = '\u001b[K'
const ERASE_BELOW = '\u001b[J'

/** stdin and stdout must be terminals. */
export function openFullScreen(onKey: (key: Key) => void, onResize: () => void): FullScreen {
  const { stdin, stdout } = process
  const terminal = enterRawMode()
  const onKeypress = (_: unknown, key: Key) => onKey(key)
  const write = (text: string) => {
    terminal.scan(Buffer.from(text))
    stdout.write(text)
  }
  emitKeypressEvents(stdin)
  stdin.on('keypress', onKeypress).resume()
  stdout.on('resize', onResize)
  write(START)
  return {
    draw: (lines) =>
      write(`${HOME}${lines.map((line) => `${line}${ERASE_LINE_END}`).join('\r\n')}${ERASE_BELOW}`),
    close() {
      stdin.off('keypress', onKeypress).pause()
      stdout.off('resize', onResize)
      terminal.restore()
    },
  }
}
