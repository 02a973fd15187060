// Lines at the bottom of the terminal that are replaced when they change.
const ERASE_BELOW = '\u001b[J'
const CLEAR_SCREEN = '\u001b[H\u001b[2J'
const cursorUp = (lines: number): string => (lines > 0 ? `\u001b[${lines}A` : '')

export type ScreenRegion = {
  /** Replaces the lines, if they have changed. Lines beyond the height of the terminal are omitted. */
  draw(lines: readonly string[]): void
  /** After a resize, because the terminal may have wrapped the lines. */
  clearScreen(): void
}

type Terminal = { rows: number; write(text: string): unknown }

export function createScreenRegion(terminal: Terminal): ScreenRegion {
  let drawn: readonly string[] = []
  return {
    draw(lines) {
      const visible = fit(lines, Math.max(2, terminal.rows - 1))
      if (visible.join('\n') === drawn.join('\n')) return
      const text = visible.map((line) => `${line}\n`).join('')
      terminal.write(`${cursorUp(drawn.length)}\r${ERASE_BELOW}${text}`)
      drawn = visible
    },
    clearScreen() {
      terminal.write(CLEAR_SCREEN)
      drawn = []
    },
  }
}

function fit(lines: readonly string[], height: number): readonly string[] {
  if (lines.length <= height) return lines
  return [...lines.slice(0, height - 1), `… ${lines.length - height + 1} more lines`]
}
