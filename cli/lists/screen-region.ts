// Lines at the bottom of the terminal that are replaced when they change.
import { stripVTControlCharacters } from 'node:util'

const ERASE_BELOW = '\u001b[J'
const CLEAR_SCREEN = '\u001b[H\u001b[2J'
const cursorUp = (rows: number): string => (rows > 0 ? `\u001b[${rows}A` : '')

export type ScreenRegion = {
  /** Replaces the lines, if they have changed. Lines that do not fit on the terminal are omitted. */
  draw(lines: readonly string[]): void
  /** Call after a resize: the terminal may have wrapped the lines. */
  clearScreen(): void
}

type Terminal = { rows: number; columns: number; write(text: string): unknown }

export function createScreenRegion(terminal: Terminal): ScreenRegion {
  let drawn: readonly string[] = []
  /** The terminal wraps a long line. */
  const countRows = (line: string) =>
    Math.max(1, Math.ceil(stripVTControlCharacters(line).length / terminal.columns))
  const sumRows = (lines: readonly string[]) => lines.reduce((sum, line) => sum + countRows(line), 0)

  function fit(lines: readonly string[]): readonly string[] {
    // The cursor is below the last line.
    const height = Math.max(2, terminal.rows - 1)
    if (sumRows(lines) <= height) return lines
    let count = lines.length
    while (count > 0 && sumRows(lines.slice(0, count)) >= height) count -= 1
    return [...lines.slice(0, count), `… ${lines.length - count} more lines`]
  }

  return {
    draw(lines) {
      const visible = fit(lines)
      if (visible.join('\n') === drawn.join('\n')) return
      const text = visible.map((line) => `${line}\n`).join('')
      terminal.write(`${cursorUp(sumRows(drawn))}\r${ERASE_BELOW}${text}`)
      drawn = visible
    },
    clearScreen() {
      terminal.write(CLEAR_SCREEN)
      drawn = []
    },
  }
}
